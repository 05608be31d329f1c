import type { MessageId } from '@pmail/core/ids.ts';
import type { InboundJob } from '@pmail/core/queue/jobs.ts';
import { rawKey } from '@pmail/core/storage/keys.ts';
import type { ScheduledEvent } from '@pmail/core/transport/types.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { deadline } from '../alarms.ts';
import { Crash, DAY, JO, KIM, MailboxRig, MINUTE, SECOND } from './mailbox.fixture.ts';
import { accepted, attempt, Run, report } from './transport.fixture.ts';

/** What test providers still have to report: repeated until it has had its effect. */

let rig: MailboxRig;
let id: MessageId;

beforeEach(async () => {
  rig = new MailboxRig();
  ({ id } = await rig.send({ body: { to: [JO, KIM] } }));
  rig.outbound.take();
});

const scheduled = (recipient: string, n: number, after_ms: number, kind: ScheduledEvent['kind']): ScheduledEvent => ({
  recipient,
  n,
  after_ms,
  kind,
  hard: kind === 'bounced',
  smtp_code: '250',
  enhanced_code: '2.0.0',
  smtp_response: '250 2.0.0 OK',
});

function copy(recipient: string): InboundJob {
  const message_id = rig.newId('msg', rig.clock.now);
  return {
    v: 1,
    kind: 'message',
    source: { type: 'routing' },
    message_id,
    ...rig.owner,
    r2_key: rawKey(rig.owner, message_id),
    raw_size: 100,
    envelope_from: 'desk@acme.example.com',
    envelope_to: recipient,
    received_at: rig.clock.now,
    request_id: 'req_01JD9Q3V7M8X2C4N6B5K1R0E9T',
    loopback: { ...rig.owner, message_id: id },
  };
}

/** Plays the queue: what was sent so far reaches the mailbox, as often as it was sent. */
async function deliver(): Promise<string[]> {
  const kinds: string[] = [];
  for (const job of rig.outbound.take()) {
    if (job.kind !== 'transport_event') continue;
    kinds.push(job.event.kind);
    await rig.engine.applyEvent(job.event);
  }
  return kinds;
}

describe('a report of the simulator', () => {
  test('is sent when it is due, with the id, the codes and the time it is about', async () => {
    await attempt(rig, id, accepted({ scheduled: [scheduled(JO, 1, SECOND, 'delivered')] }));
    const at = rig.clock.now;
    await rig.advance(SECOND - 1);
    expect(rig.outbound.sent).toEqual([]);
    await rig.advance(1);
    expect(rig.outbound.take()).toEqual([
      {
        v: 1,
        kind: 'transport_event',
        ...rig.owner,
        event: {
          source: 'simulator',
          event_id: `sim:${id}:${JO}:1`,
          provider_message_id: 'prov-1',
          sender: 'desk@acme.example.com',
          recipient: JO,
          subject: 'Your booking',
          kind: 'delivered',
          hard: false,
          outcome: 'delivered',
          suppress: null,
          smtp_code: '250',
          enhanced_code: '2.0.0',
          smtp_response: '250 2.0.0 OK',
          occurred_at: at + SECOND,
        },
      },
    ]);
  });

  test('is sent again every five minutes until it is seen, and then no more', async () => {
    await attempt(rig, id, accepted({ scheduled: [scheduled(JO, 1, SECOND, 'delivered')] }));
    await rig.advance(16 * MINUTE);
    expect(rig.outbound.sent).toHaveLength(4);
    expect(await deliver()).toEqual(['delivered', 'delivered', 'delivered', 'delivered']);
    expect(rig.eventTypes.filter((type) => type === 'message.delivered')).toHaveLength(1);
    expect(rig.rows('followups')).toBe(0);
    expect(deadline(rig.sql, 'followup')).toBeNull();
    await rig.advance(DAY);
    expect(rig.outbound.sent).toEqual([]);
  });

  test('that has come ends the earlier ones of its recipient, and no others', async () => {
    await attempt(
      rig,
      id,
      accepted({
        scheduled: [
          scheduled(JO, 1, SECOND, 'deferred'),
          scheduled(JO, 2, 3 * SECOND, 'bounced'),
          scheduled(KIM, 1, SECOND, 'delivered'),
        ],
      }),
    );
    const late = { source: 'simulator', event_id: `sim:${id}:${JO}:2` } as const;
    await rig.engine.applyEvent(report(rig, 'bounced', late));
    await rig.advance(10 * SECOND);
    const left = rig.outbound.take().map((job) => (job.kind === 'transport_event' ? job.event.event_id : ''));
    expect(left).toEqual([`sim:${id}:${KIM}:1`]);
  });

  test('of a real provider ends none, whatever its id looks like', async () => {
    await attempt(rig, id, accepted({ scheduled: [scheduled(JO, 1, SECOND, 'delivered')] }));
    await rig.engine.applyEvent(report(rig, 'deferred', { event_id: `sim:${id}:${JO}:1` }));
    expect(rig.rows('followups')).toBe(1);
  });

  test('is scheduled in the transaction of the acceptance', async () => {
    const run = new Run(rig, id);
    run.claim();
    rig.dieAt('outcome.in_transaction');
    const result = accepted({ scheduled: [scheduled(JO, 1, SECOND, 'delivered')] });
    await expect(run.record(result)).rejects.toThrow(Crash);
    rig.restart();
    expect(rig.rows('followups')).toBe(0);
    await run.record(result);
    await run.record(result);
    expect(rig.rows('followups')).toBe(1);
  });

  test('of a late acceptance comes all the same (C6)', async () => {
    const run = new Run(rig, id);
    run.claim();
    await rig.advance(6 * MINUTE);
    await run.record(accepted({ scheduled: [scheduled(JO, 1, SECOND, 'delivered')] }));
    await rig.advance(SECOND);
    expect(await deliver()).toEqual(['delivered']);
    expect(rig.statuses(id)[JO]).toBe('delivered');
  });

  test.each(['followup.before_send', 'followup.after_send'] as const)('that dies at %s is sent again', async (mark) => {
    await attempt(rig, id, accepted({ scheduled: [scheduled(JO, 1, SECOND, 'delivered')] }));
    rig.dieAt(mark);
    await rig.advance(SECOND);
    rig.restart();
    await rig.advance(MINUTE);
    expect(rig.outbound.sent.length).toBe(mark === 'followup.before_send' ? 1 : 2);
  });

  test('whose queue fails is sent again soon', async () => {
    await attempt(rig, id, accepted({ scheduled: [scheduled(JO, 1, SECOND, 'delivered')] }));
    rig.outbound.sends.failNext(1);
    await rig.advance(SECOND);
    expect(rig.outbound.sent).toEqual([]);
    await rig.advance(30 * SECOND);
    expect(rig.outbound.sent).toHaveLength(1);
  });

  test('waits its turn when there are more than one run takes', async () => {
    const many = Array.from({ length: 230 }, (_, n) => scheduled(JO, n + 1, SECOND, 'deferred'));
    await attempt(rig, id, accepted({ scheduled: many }));
    await rig.advance(SECOND);
    expect(rig.outbound.sent).toHaveLength(230);
  });
});

describe('a copy for a local mailbox', () => {
  test('was sent by the transport; it is sent again only when nobody reports it', async () => {
    const job = copy(JO);
    await attempt(rig, id, accepted({ copies: [job] }));
    await rig.advance(5 * MINUTE - 1);
    expect(rig.inbound.sent).toEqual([]);
    await rig.advance(1);
    expect(rig.inbound.take()).toEqual([job]);
    await rig.engine.applyEvent(
      report(rig, 'delivered', { source: 'loopback', event_id: `loop:${id}:${JO}:0`, recipient: JO }),
    );
    await rig.advance(DAY);
    expect(rig.inbound.sent).toEqual([]);
    expect(rig.statuses(id)[JO]).toBe('delivered');
  });

  test('and its report, which ends it and not the scripts of others', async () => {
    await attempt(rig, id, accepted({ copies: [copy(JO)], scheduled: [scheduled(KIM, 1, MINUTE, 'delivered')] }));
    await rig.engine.applyEvent(
      report(rig, 'delivered', { source: 'loopback', event_id: `loop:${id}:${JO}:0`, recipient: JO }),
    );
    expect(rig.rows('followups')).toBe(1);
    await rig.advance(MINUTE);
    expect(await deliver()).toEqual(['delivered']);
    expect(rig.message(id).status).toBe('delivered');
  });
});

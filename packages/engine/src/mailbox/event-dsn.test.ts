import type { DsnReport } from '@pmail/core/delivery/dsn.ts';
import type { DsnEnvelope } from '@pmail/core/delivery/dsn-verdict.ts';
import { utf8 } from '@pmail/core/hash.ts';
import { type MessageId, ulidOf } from '@pmail/core/ids.ts';
import type { DomainFacts } from '@pmail/core/policy/types.ts';
import { parseMail } from '@pmail/mime/parse.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { forwarded, inParts, plainText, reportFrom, TRANSLATED } from './event-dsn.fixture.ts';
import type { DsnAnswer } from './event-dsn.ts';
import { arrive, DESK } from './inbound.fixture.ts';
import { JO, MailboxRig, MINUTE } from './mailbox.fixture.ts';
import { accepted, report as eventReport, facts, Run, TIMEOUT } from './transport.fixture.ts';

/** Reports that come as mail, about mail that left by a relay. The numbers are those of the cases. */

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
});

/** The Message-ID that a message was composed with; a relay keeps it. */
const rfcOf = (id: MessageId): string => `${ulidOf(id)}@acme.example.com`;

async function sent(to = [JO], transport: DomainFacts['transport'] = 'smtp', known = true): Promise<MessageId> {
  const { id } = await rig.send({ body: { to, subject: 'Your booking 4471' } });
  const run = new Run(rig, id);
  run.claim(facts({ transport }));
  const provider_message_id = `smtp:relay.example:<${rfcOf(id)}>`;
  await run.record(known ? accepted({ provider_message_id, rfc_message_id: rfcOf(id) }) : TIMEOUT);
  return id;
}

/** What the mailbox does with a report once it has arrived. */
function apply(report: DsnReport, envelope: Partial<DsnEnvelope> = {}): Promise<DsnAnswer> {
  return rig.engine.applyDsn(report, {
    report_id: `report ${++reports}`,
    sender: DESK,
    null_sender: true,
    envelope_proof: true,
    received_at: rig.clock.now,
    ...envelope,
  });
}

let reports = 0;

const failed = (recipient: string, status: string, more = ''): string =>
  `Final-Recipient: rfc822; ${recipient}\nAction: failed\nStatus: ${status}\n${more}`;

const suppressed = ({ answers }: DsnAnswer): unknown[] =>
  answers.map((answer) => ('suppress' in answer ? answer.suppress : undefined));

describe('a report of the field', () => {
  test('case 46: given up after its time is soft, and nobody is suppressed', async () => {
    const id = await sent();
    const status = `X-Relay-QueueID: 515172155\nX-Relay-Sender: \nArrival-Date: 2026-11-28 18-21-01\n
Final-Recipient: rfc822; jo@example.net\nOriginal-Recipient: rfc822; jo@example.net\nAction: expired\nStatus: \nDiagnostic-Code: Connection timed out`;
    const outcome = await apply(await reportFrom(inParts({ status, id: rfcOf(id) })));
    expect(outcome.original).toBe(id);
    expect(suppressed(outcome)).toEqual([null]);
    expect(rig.message(id).deliveries).toMatchObject([{ status: 'bounced', bounce_type: 'soft', smtp_code: null }]);
  });

  test('case 54: two addresses, all in multipart/mixed, with the codes only in the words', async () => {
    const id = await sent(['gone@example.net', 'full@example.net']);
    const outcome = await apply(
      await reportFrom(
        inParts({
          type: 'multipart/mixed',
          text: 'gone@example.net: 550 5.1.1 <gone@example.net>: User unknown\nfull@example.net: 552 5.2.2 <full@example.net>: Mailbox full',
          status: `Reporting-MTA: dns; mx.example.net\n\n${failed('gone@example.net', '5.0.0')}\n${failed('full@example.net', '5.0.0')}`,
          id: rfcOf(id),
        }),
      ),
    );
    expect(suppressed(outcome)).toEqual(['hard_bounce', null]);
    expect(rig.message(id).deliveries).toMatchObject([
      { status: 'bounced', bounce_type: 'hard', enhanced_code: '5.1.1' },
      { status: 'bounced', bounce_type: 'soft', enhanced_code: '5.2.2' },
    ]);
  });

  test('case 55: a bounce that is only text finds its message, and changes nothing', async () => {
    const id = await sent();
    const before = rig.message(id);
    expect(await apply(await reportFrom(plainText(rfcOf(id))))).toEqual({ original: id, answers: [] });
    expect(rig.message(id)).toEqual(before);
  });

  test('case 57: the address that failed is one that ours forwards to', async () => {
    const id = await sent(['bookings+4471@example.net']);
    const outcome = await apply(await reportFrom(forwarded(rfcOf(id))));
    expect(outcome).toMatchObject({ original: id, answers: [{ kind: 'applied', suppress: null }] });
    expect(rig.message(id).deliveries).toMatchObject([
      { address: 'bookings+4471@example.net', status: 'deferred', enhanced_code: '4.3.0' },
    ]);
  });

  test('case 58: a report that lists nobody finds its message, and changes nothing', async () => {
    const id = await sent();
    const status = 'Reporting-MTA: dns; mx.example.net\nX-Queue-ID: B1C79423C925';
    const report = await reportFrom(inParts({ status, id: rfcOf(id), end: '--=_other--' }));
    const told = rig.eventTypes;
    expect(await apply(report)).toEqual({ original: id, answers: [] });
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted' });
    expect(rig.eventTypes).toEqual(told);
  });

  test('case 60: a translated one without a part for machines changes nothing', async () => {
    const id = await sent();
    const before = rig.storage.dump();
    expect(await apply(await reportFrom(TRANSLATED))).toEqual({ original: null, answers: [] });
    expect(rig.storage.dump()).toBe(before);
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted' });
    const { subject, attachments } = await parseMail(utf8(TRANSLATED.replaceAll('\n', '\r\n')));
    expect([subject, attachments]).toEqual(['Unzustellbar: Your booking 4471', []]);
  });
});

describe('who is judged by it (R6)', () => {
  const hard = async (id: MessageId): Promise<DsnReport> =>
    reportFrom(inParts({ status: failed(JO, '5.1.1'), id: rfcOf(id) }));

  test.each(['cloudflare', 'ses'] as const)('mail that left by %s is not', async (transport) => {
    const id = await sent([JO], transport);
    const report = await hard(id);
    const before = rig.storage.dump();
    expect(await apply(report)).toEqual({ original: id, answers: [] });
    expect(rig.storage.dump()).toBe(before);
    // Nor by an event that somebody has made of one.
    const event = { rfc_message_id: rfcOf(id), provider_message_id: null, source: 'dsn' as const };
    expect(await rig.engine.applyEvent(eventReport(rig, 'bounced', event))).toEqual({
      kind: 'ignored',
      message_id: id,
      outcome: null,
      suppress: null,
    });
    expect(rig.storage.dump()).toBe(before);
  });

  test('no mail is, when the report has a sender', async () => {
    const id = await sent();
    expect(await apply(await hard(id), { null_sender: false })).toEqual({ original: id, answers: [] });
    expect(rig.statuses(id)).toEqual({ [JO]: 'submitted' });
  });

  test('without proof of the envelope the status changes, and nothing that would outlast it', async () => {
    const id = await sent();
    expect((await apply(await hard(id), { envelope_proof: false })).answers).toEqual([
      { kind: 'applied', message_id: id, outcome: null, suppress: null },
    ]);
    expect(rig.message(id).deliveries).toMatchObject([{ status: 'bounced', bounce_type: 'hard' }]);
    expect(rig.eventData('message.bounced')).toMatchObject([{ recipient: JO, suppressed: false }]);
  });

  test('mail of nobody here is backscatter', async () => {
    const report = await reportFrom(inParts({ status: failed(JO, '5.1.1'), id: 'other@example.com' }));
    expect(await apply(report)).toEqual({ original: null, answers: [] });
  });
});

describe('the message it is about', () => {
  test.each([
    ['a field of a gateway', (id: string) => ({ headers: `X-Microsoft-Original-Message-ID: <${id}>\n` })],
    ['the mail it answers', (id: string) => ({ headers: `In-Reply-To: <${id}>\n` })],
    ['its references', (id: string) => ({ headers: `References: <${id}> <other@example.net>\n` })],
  ])('is named by %s when nothing came back', async (_where, parts) => {
    const id = await sent();
    const report = await reportFrom(inParts({ status: failed(JO, '5.1.1'), ...parts(rfcOf(id)) }));
    expect(await apply(report)).toMatchObject({ original: id, answers: [{ kind: 'applied' }] });
  });

  test('is found although nobody knows whether the relay took it, and that is settled', async () => {
    const id = await sent([JO], 'smtp', false);
    expect(rig.message(id)).toMatchObject({ status: 'uncertain', rfc_message_id: null });
    const report = await reportFrom(inParts({ status: failed(JO, '5.1.1'), id: rfcOf(id) }));
    expect((await apply(report)).answers).toMatchObject([{ kind: 'reconciled', message_id: id }]);
    expect(rig.message(id)).toMatchObject({ status: 'bounced', flags: ['reconciled'] });
    await rig.advance(MINUTE);
    expect(rig.quotaBooks.used).toBe(1);
  });

  test('gets the id that its relay has written for it, so that answers and later reports find it (R7)', async () => {
    const id = await sent();
    const both = `Message-ID: <rewritten@relay.example>\nX-Original-Message-ID: <${rfcOf(id)}>\nSubject: x\n\nx`;
    const report = await reportFrom(
      inParts({ status: `Final-Recipient: rfc822; ${JO}\nAction: delayed\nStatus: 4.2.0` }).replace(
        '--=_b1--',
        `--=_b1\nContent-Type: text/rfc822-headers\n\n${both}\n\n--=_b1--`,
      ),
    );
    expect((await apply(report)).answers).toMatchObject([{ kind: 'applied' }]);
    const answer = await arrive(rig, { parsed: { in_reply_to: ['rewritten@relay.example'] } });
    expect(answer.thread_id).toBe(rig.message(id).thread_id);
    const later = await reportFrom(inParts({ status: failed(JO, '5.1.1'), id: 'rewritten@relay.example' }));
    expect((await apply(later)).answers).toMatchObject([{ kind: 'applied', suppress: 'hard_bounce' }]);
    expect(rig.message(id).rfc_message_id).toBe(rfcOf(id));
  });
});

test('the same report again is a repeat; a delay and then a failure are two', async () => {
  const id = await sent();
  const delay = await reportFrom(
    inParts({ status: `Final-Recipient: rfc822; ${JO}\nAction: delayed\nStatus: 4.2.0`, id: rfcOf(id) }),
  );
  const failure = await reportFrom(inParts({ status: failed(JO, '5.1.1'), id: rfcOf(id) }));
  expect((await apply(delay, { report_id: 'a' })).answers).toMatchObject([{ kind: 'applied' }]);
  expect((await apply(delay, { report_id: 'a' })).answers).toMatchObject([{ kind: 'duplicate' }]);
  expect((await apply(failure, { report_id: 'b' })).answers).toMatchObject([{ kind: 'applied' }]);
  expect((await apply(failure, { report_id: 'b' })).answers).toMatchObject([
    { kind: 'duplicate', suppress: 'hard_bounce' },
  ]);
  expect(rig.statuses(id)).toEqual({ [JO]: 'bounced' });
});

import { sha256Hex } from '@pmail/core/hash.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { parseMail } from '@pmail/mime/parse.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { arrive } from './inbound.fixture.ts';
import { Crash, MailboxRig, MINUTE, SECOND, type SendOptions, type Submitted } from './mailbox.fixture.ts';
import { accepted, attempt, Run } from './transport.fixture.ts';
import { VirtualTime } from './virtual-time.fixture.ts';

/** What a send finds changed in its thread after it has waited for its turn. */

let rig: MailboxRig;
let time: VirtualTime;
let first: MessageResource;
/** Holds the thread until `leave` is called. */
let holder: MessageResource;

beforeEach(async () => {
  rig = new MailboxRig();
  rig.composer = createComposer();
  time = new VirtualTime(rig.clock);
  rig.sleep = time.sleep;
  first = await rig.send();
  await attempt(rig, first.id, accepted({ rfc_message_id: 'first@acme.example.com' }));
  rig.clock.now += SECOND;
  holder = await rig.send({ body: { thread_id: first.thread_id } });
});

async function leave(): Promise<void> {
  const ids = { provider_message_id: 'prov-2', rfc_message_id: 'holder@acme.example.com' };
  await attempt(rig, holder.id, accepted(ids));
}

/** Submits, does something after a while, and lets time pass. */
async function meanwhile(options: SendOptions, after: number, act: () => Promise<unknown>): Promise<Submitted> {
  const answer = time.start(() => rig.submit(options));
  const other = time.start(async () => {
    await time.sleep(after);
    await act();
  });
  await time.pass();
  await other;
  return answer;
}

function accept(answer: Submitted): MessageResource {
  if (!answer.ok) throw new Error(`refused: ${answer.code}`);
  return answer.message;
}

function next(options: SendOptions = {}): SendOptions {
  return { key: 'next', ...options, body: { thread_id: first.thread_id, ...options.body } };
}

async function copyOf(id: MessageId) {
  const row = rig.sql.first<{ raw_r2_key: string }>('SELECT raw_r2_key FROM messages WHERE id = ?', id);
  return parseMail(rig.blobs.objects.get(row?.raw_r2_key ?? '')?.bytes ?? new Uint8Array());
}

const NOTHING_OF_IT = { messages: 2, keys: 2, held: 1, counted: 2, blobs: 2 };

function kept(): typeof NOTHING_OF_IT {
  const { held, counted } = rig.quotaBooks;
  return { messages: rig.rows('messages'), keys: rig.rows('idempotency'), held, counted, blobs: rig.blobs.keys.length };
}

describe('a send that waited', () => {
  test('names the message before it, has the time at which it was accepted, and is stored so', async () => {
    const started = rig.clock.now;
    const { id } = accept(await meanwhile(next(), 3 * SECOND + 100, leave));
    const message = rig.message(id);
    expect(message.in_reply_to).toBe('holder@acme.example.com');
    expect(Date.parse(message.received_at)).toBe(started + 3 * SECOND + 250);
    expect(message.sent_at).toBe(message.received_at);
    const copy = await copyOf(id);
    expect(copy.in_reply_to).toEqual(['holder@acme.example.com']);
    expect(copy.references).toEqual(['first@acme.example.com', 'holder@acme.example.com']);
    // A header has whole seconds.
    expect(copy.date).toBe(Math.floor((started + 3 * SECOND + 250) / SECOND) * SECOND);
    expect(await rig.submit(next())).toMatchObject({ ok: true, deduplicated: true, message: { id } });
  });

  test('is claimed with the bytes that are stored', async () => {
    const { id } = accept(await meanwhile(next(), 2 * SECOND, leave));
    const { r2_key, mime_sha256 } = new Run(rig, id).claim();
    expect(await sha256Hex(rig.blobs.objects.get(r2_key)?.bytes.slice() ?? '')).toBe(mime_sha256);
  });

  test('names mail that came in meanwhile', async () => {
    const answer = await meanwhile(next(), 2 * SECOND, async () => {
      await arrive(rig, { parsed: { rfc_message_id: 'answer@example.net', in_reply_to: ['first@acme.example.com'] } });
      await leave();
    });
    expect(accept(answer).in_reply_to).toBe('answer@example.net');
  });

  test('comes behind one that was asked for later and did not wait; what follows names it', async () => {
    const leaveAs = async ({ id }: MessageResource, rfc: string): Promise<unknown> =>
      attempt(rig, id, accepted({ provider_message_id: `prov ${rfc}`, rfc_message_id: `${rfc}@acme.example.com` }));
    const early = time.start(() => rig.submit(next({ key: 'early' })));
    const late = time.start(async () => {
      await time.sleep(280);
      await leave();
      const answer = await rig.submit(next({ key: 'late' }));
      await time.sleep(300);
      await leaveAs(accept(answer), 'late');
      return answer;
    });
    await time.pass();
    const [waited, passed] = [accept(await early), accept(await late)];
    expect(waited.id < passed.id).toBe(true);
    expect([passed.in_reply_to, waited.in_reply_to]).toEqual(['holder@acme.example.com', 'late@acme.example.com']);
    await leaveAs(waited, 'early');
    expect(accept(await time.start(() => rig.submit(next()))).in_reply_to).toBe('early@acme.example.com');
  });

  test('and whose thread says the same is not composed again', async () => {
    const answer = await meanwhile(next(), SECOND, () => rig.engine.cancel(holder.id));
    expect(accept(answer).in_reply_to).toBe('first@acme.example.com');
    expect(rig.blobs.puts.calls).toBe(3);
  });

  test('does not write its copy twice within a second', async () => {
    const started = rig.clock.now;
    const { id } = accept(await meanwhile(next(), 10, leave));
    expect(Date.parse(rig.message(id).received_at)).toBe(started + SECOND);
    expect(rig.blobs.puts.calls).toBe(4);
  });

  test('a reply names the message it answers whatever else was sent, as soon as its id is known', async () => {
    const reply: SendOptions = { key: 'reply', operation: 'reply', target_id: holder.id, body: { text: 'More' } };
    expect(accept(await meanwhile(reply, 2 * SECOND, leave)).in_reply_to).toBe('holder@acme.example.com');
    const older: SendOptions = { ...reply, key: 'older', target_id: first.id };
    rig.clock.now += 2 * MINUTE + 1;
    expect(accept(await rig.submit(older)).in_reply_to).toBe('first@acme.example.com');
  });

  test('is refused when mail has come round too often meanwhile, and nothing of it is kept', async () => {
    const answer = await meanwhile(next(), 2 * SECOND, async () => {
      await arrive(rig, { parsed: { in_reply_to: ['first@acme.example.com'], hop: 9 } });
      await rig.engine.cancel(holder.id);
    });
    expect(answer).toMatchObject({ ok: false, code: 'loop_detected', details: { hop: 10 } });
    // The holder was canceled, so its hold and count went too; a message more came in.
    expect(kept()).toEqual({ ...NOTHING_OF_IT, messages: 3, held: 0, counted: 1 });
  });

  test('counts the hop of mail that came in meanwhile', async () => {
    const { id } = accept(
      await meanwhile(next(), 2 * SECOND, async () => {
        await arrive(rig, { parsed: { in_reply_to: ['first@acme.example.com'], hop: 4 } });
        await leave();
      }),
    );
    expect((await copyOf(id)).hop).toBe(5);
  });
});

describe('while a send is composed again', () => {
  test('it has the next turn: one that comes then waits for it', async () => {
    const started = rig.clock.now;
    const one = time.start(() => rig.submit(next({ key: 'one' })));
    const other = time.start(async () => {
      await time.sleep(100);
      await leave();
      await time.sleep(400);
      // Nothing about this one has to be made again, and nobody holds the lock.
      return rig.submit({ key: 'two', operation: 'reply', target_id: first.id, body: { text: 'More' } });
    });
    await time.pass();
    expect(Date.parse(accept(await one).received_at)).toBe(started + SECOND);
    expect(await other).toMatchObject({ code: 'thread_busy' });
  });

  test('and the store fails: it is refused, nothing of it is kept, and the thread is free for the next', async () => {
    const answer = await meanwhile(next(), 2 * SECOND, async () => {
      rig.blobs.puts.failNext();
      await leave();
    });
    expect(answer).toMatchObject({ ok: false, code: 'unavailable', details: { step: 'store' } });
    expect(kept()).toEqual({ ...NOTHING_OF_IT, held: 0 });
    const started = rig.clock.now;
    accept(await time.start(() => rig.submit(next({ key: 'other' }))));
    expect(rig.clock.now).toBe(started);
  });

  test('and the instance dies: the repeat is the first, and nobody waits for the dead', async () => {
    rig.dieAt('submit.stored', 2);
    const answer = time.start(() => rig.submit(next())).catch((error: unknown) => error);
    const other = time.start(async () => {
      await time.sleep(2 * SECOND);
      await leave();
    });
    await time.pass();
    await other;
    expect(await answer).toBeInstanceOf(Crash);
    rig.restart();
    const started = rig.clock.now;
    const message = accept(await time.start(() => rig.submit(next())));
    expect(rig.clock.now).toBe(started);
    expect(message.in_reply_to).toBe('holder@acme.example.com');
    expect(rig.rows('messages')).toBe(3);
  });

  test('and it becomes too large by that: it is refused, and nothing of it is kept', async () => {
    const { composer } = rig;
    rig.composer = {
      compose: async (input) => {
        const mail = await composer.compose(input);
        const large = input.in_reply_to === 'holder@acme.example.com';
        return large ? { ...mail, mime: new Uint8Array(5_300_000) } : mail;
      },
    };
    expect(await meanwhile(next(), 2 * SECOND, leave)).toMatchObject({ ok: false, code: 'message_too_large' });
    expect(kept()).toEqual({ ...NOTHING_OF_IT, held: 0 });
  });

  test('and the thread changes each time anew: it is accepted all the same after ten seconds', async () => {
    let n = 0;
    let done = false;
    const answer = time.start(() => rig.submit(next()).finally(() => (done = true)));
    const other = time.start(async () => {
      await time.sleep(300);
      await leave();
      while (!done) {
        await arrive(rig, {
          parsed: { rfc_message_id: `${++n}@example.net`, in_reply_to: ['first@acme.example.com'] },
        });
        await time.sleep(500);
      }
    });
    const started = rig.clock.now;
    await time.pass();
    await other;
    const { id } = accept(await answer);
    expect(Date.parse(rig.message(id).received_at) - started).toBeLessThanOrEqual(11 * SECOND);
    expect(rig.message(id).in_reply_to).toMatch(/^\d+@example\.net$/);
  });
});

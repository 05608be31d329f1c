import type { MessageId } from '@pmail/core/ids.ts';
import type { SendOperation } from '@pmail/core/message/request.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { arriveRaw, forward, reply, replyAll } from './answers.fixture.ts';
import { DESK } from './inbound.fixture.ts';
import { JO, KIM, MailboxRig, type SendOptions } from './mailbox.fixture.ts';

/** A dry run looks at everything and leaves everything as it was. */

let rig: MailboxRig;
let target: MessageId;

beforeEach(async () => {
  rig = new MailboxRig();
  rig.composer = createComposer();
  // A mailbox in which everything is under way: mail, a thread that is held, events, counts of the day, a registry entry.
  target = (
    await arriveRaw(rig, [
      'From: Jo <jo@example.net>',
      `To: ${DESK}, Kim <${KIM}>`,
      'Subject: Question',
      'Message-ID: <q@example.net>',
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary="b"',
      '',
      '--b',
      '',
      'When does it open?',
      '--b',
      'Content-Type: text/plain',
      'Content-Disposition: attachment; filename="f.txt"',
      '',
      'a file',
      '--b--',
    ])
  ).message_id;
  await rig.send({ body: { thread_id: rig.message(target).thread_id } });
});

const attachments = [{ filename: 'a.txt', content_type: 'text/plain', content_base64: 'YQ==' }];

const OPERATIONS: [SendOperation, (options?: SendOptions) => SendOptions][] = [
  ['send', (options) => ({ ...options, body: { to: [JO], attachments, labels: ['a'], ...options?.body } })],
  ['reply', (options) => reply(target, { ...options, body: { attachments, ...options?.body } })],
  ['reply_all', (options) => replyAll(target, { ...options, body: { attachments, ...options?.body } })],
  ['forward', (options) => forward(target, { ...options, body: { attachments, ...options?.body } })],
];

/** Everything that outlives a call: tables of mailbox and quota, their alarms, objects, queues, registry, events. */
function everything(): Record<string, unknown> {
  return {
    mailbox: rig.storage.dump(),
    mailboxAlarm: rig.storage.alarmAt,
    quota: rig.quotaStorage.dump(),
    quotaAlarm: rig.quotaStorage.alarmAt,
    objects: [...rig.blobs.objects].map(([key, { bytes, metadata }]) => [key, bytes.join(), metadata]),
    outbound: structuredClone(rig.outbound.sent),
    inbound: structuredClone(rig.inbound.sent),
    registry: [...rig.registry],
    dispatched: [...rig.dispatched],
    writes: [rig.blobs.puts, rig.blobs.deletes, rig.reserves, rig.applies, rig.registering, rig.clearing, rig.sink].map(
      ({ calls }) => calls,
    ),
    now: rig.clock.now,
  };
}

describe.each(OPERATIONS)('a dry run of %s', (operation, options) => {
  test('that would be accepted changes nothing', async () => {
    const before = everything();
    expect(await rig.dryRun(options())).toMatchObject({ ok: true });
    await rig.settle();
    expect(everything()).toEqual(before);
  });

  test.each<[string, SendOptions, string]>([
    ['the policy', { identity: { status: 'paused', pause_reason: 'manual' } }, 'identity_paused'],
    ['the content', { body: { labels: ['No'] } }, 'invalid_request'],
    ['the From', { body: { from_address: 'other@acme.example.com' } }, 'invalid_request'],
    ['the size', { body: { text: 'x'.repeat(5_300_000) } }, 'message_too_large'],
    ['the filters', { directory: { send_block: ['@example.net'] } }, 'recipient_blocked'],
  ])('that is refused for %s changes nothing', async (_what, refused, code) => {
    const before = everything();
    expect(await rig.dryRun(options(refused))).toMatchObject({ ok: false, code });
    expect(everything()).toEqual(before);
  });

  test('is not kept by anything it does not look at: caps, allowance, lock, its key', async () => {
    rig.quota.setBilling('metered', { sends: 0 });
    const policy = { identity_daily_send_cap: 0, tenant_daily_send_cap: 0 };
    const before = everything();
    for (const key of ['key 1', 'key 1', 'k-1']) {
      expect(await rig.dryRun(options({ key, policy }))).toMatchObject({ ok: true });
    }
    expect(everything()).toEqual(before);
  });

  test('that names recipients to ask the directory about changes nothing', async () => {
    const request = await rig.request(options());
    const before = everything();
    const unasked = { ...request, directory: { ...request.directory, checked: [] } };
    expect(await rig.engine.dryRun(unasked)).toMatchObject({ ok: false, code: 'directory_needed' });
    expect(everything()).toEqual(before);
  });

  test('says what the send itself then does', async () => {
    const given: SendOptions = { directory: { suppressions: { [KIM]: 'complaint' } } };
    rig.sql.run('UPDATE threads SET lock_owner = NULL, lock_until = NULL');
    const dry = await rig.dryRun(options(given));
    const message = await rig.send(options(given));
    expect(message.operation).toBe(operation);
    expect(dry).toMatchObject({
      recipients: message.deliveries?.map(({ address, field, status }) => ({ address, field, status })),
    });
  });
});

test('a dry run is a look at one moment: what comes after it may differ', async () => {
  expect(await rig.dryRun(reply(target))).toMatchObject({ ok: true });
  expect(await rig.submit(reply(target))).toMatchObject({ ok: false, code: 'thread_busy' });
});

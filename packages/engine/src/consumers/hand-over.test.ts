import { journalAddress } from '@pmail/core/cloudflare/message-id.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { checkThreadToken } from '@pmail/core/threading/token.ts';
import type { OutgoingMessage } from '@pmail/core/transport/types.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { JO, KIM, MINUTE, THREAD_KEY } from '../mailbox/mailbox.fixture.ts';
import { retryLater, SUPPRESSED, TIMEOUT } from '../mailbox/transport.fixture.ts';
import { statement } from '../sql.ts';
import { consumeSend } from './send.ts';
import { Service } from './service.fixture.ts';

/** What a transport is handed: the stored message, and beside it only what belongs to the transport. */

let service: Service;
let id: MessageId;

beforeEach(async () => {
  service = await Service.create();
  service.rig.composer = createComposer();
});

async function sendOne(): Promise<void> {
  ({ id } = await service.send({ to: [JO], cc: [KIM], text: 'Hello.\nFrom: nobody' }));
}

function stored(): string {
  const bytes = service.rig.blobs.objects.get(service.rig.engine.rawLocation(id, false) ?? '')?.bytes;
  return new TextDecoder('latin1').decode(bytes);
}

function handed(provider: 'cloudflare' | 'ses' | 'simulator' = 'cloudflare', call = 0): OutgoingMessage {
  const message = service.transports[provider].calls[call]?.message;
  if (message === undefined) throw new Error('no call');
  return message;
}

const bytesOf = ({ mime }: OutgoingMessage): string => new TextDecoder('latin1').decode(mime);

describe('Cloudflare', () => {
  const journal = (): string => journalAddress(id, service.identity.id, 'agents.example');

  test('gets the message in fields, and a hidden copy for us, which is nobody we send to', async () => {
    service.messageIds = { strategy: 'journal', domain: null };
    await sendOne();
    await service.consume(id);
    expect(handed()).toMatchObject({ to: [JO], cc: [KIM], bcc: [], journal_bcc: journal() });
    expect(handed().text).toContain('Hello.');
    expect(bytesOf(handed())).toBe(stored());
    expect(Object.keys(service.rig.statuses(id))).toEqual([JO, KIM]);
    expect(service.rig.message(id).bcc).toEqual([]);
    expect(service.rig.quotaBooks.used).toBe(2);
    expect(service.rig.eventData('message.sent')).not.toContain('journal');
  });

  test('gets the hidden copy with every call', async () => {
    service.messageIds = { strategy: 'journal', domain: null };
    await sendOne();
    service.transports.cloudflare.answers.push(SUPPRESSED, retryLater('rate_limit'));
    service.transports.cloudflare.suppressions = [{ address: JO, reason: 'manual', expires_at: null }];
    await service.consume(id);
    await service.rig.advance(MINUTE);
    await service.consume(id);
    expect(service.transports.cloudflare.calls.map(({ message }) => message.journal_bcc)).toEqual([
      journal(),
      journal(),
      journal(),
    ]);
  });

  test.each(['derived', 'none'] as const)('gets none by the strategy %s', async (strategy) => {
    service.messageIds = { strategy, domain: null };
    await sendOne();
    await service.consume(id);
    expect(handed().journal_bcc).toBeNull();
  });

  test('is not called when the stored message cannot be read apart', async () => {
    await sendOne();
    const world = service.world();
    world.content = () => Promise.reject(new Error('no'));
    expect(await consumeSend(world, service.job(id))).toEqual({ kind: 'ack' });
    expect(service.calls).toEqual({});
    expect(service.rig.message(id).status).toBe('queued');
  });
});

test('other transports get the stored bytes, and neither fields nor a hidden copy', async () => {
  service.messageIds = { strategy: 'journal', domain: null };
  await service.addOwnDomain('ses');
  await sendOne();
  await service.consume(id);
  expect(handed('ses')).toMatchObject({ journal_bcc: null, text: null, html: null, headers: [], attachments: [] });
  expect(bytesOf(handed('ses'))).toBe(stored());
});

describe('a domain that fails', () => {
  const PLATFORM = 'desk.acme@agents.example';

  beforeEach(async () => {
    await service.addOwnDomain('ses');
    await sendOne();
    await service.set('tenants', 'policy_json', '{"domain_fallback":true}');
    await service.db.batch([statement("UPDATE domains SET state = 'failing' WHERE kind = 'external'")]);
  });

  /** Fields of the header, and the rest. */
  function apart(mime: string): { from: string[]; rest: string } {
    const fields = mime.split(/(?<=\r\n)(?![ \t])/);
    const own = (field: string): boolean => /^(from|reply-to):/i.test(field);
    const end = fields.indexOf('\r\n');
    const head = fields.slice(0, end);
    return { from: head.filter(own), rest: [...head.filter((field) => !own(field)), ...fields.slice(end)].join('') };
  }

  test('lets the message leave by Cloudflare, with other bytes in From and Reply-To alone (I6)', async () => {
    await service.consume(id);
    expect(service.calls).toEqual({ cloudflare: 1 });
    const message = handed();
    expect(message.from).toEqual({ address: PLATFORM, name: 'desk' });
    const before = apart(stored());
    const after = apart(bytesOf(message));
    expect(after.rest).toBe(before.rest);
    expect(before.from[0]).toBe('From: desk <desk@acme.example.com>\r\n');
    expect(after.from).toEqual([`From: desk <${PLATFORM}>\r\n`, `Reply-To: desk <${message.reply_to}>\r\n`]);
    const detail = /\+(.+)@/.exec(message.reply_to ?? '')?.[1] ?? '';
    expect(await checkThreadToken([THREAD_KEY], service.identity.id, detail)).toMatchObject({ kind: 'valid' });
    expect(service.rig.message(id)).toMatchObject({ status: 'submitted', flags: ['sent_via_fallback'] });
  });

  test('and one that is put off leaves with the same bytes the next time', async () => {
    service.transports.cloudflare.answers.push(retryLater('quota'));
    await service.consume(id);
    await service.rig.advance(MINUTE);
    await service.set('domains', 'state', 'healthy');
    await service.consume(id);
    expect(bytesOf(handed('cloudflare', 1))).toBe(bytesOf(handed()));
    expect(service.calls).toEqual({ cloudflare: 2 });
  });

  test('and a lost answer of the claim does not make a second call', async () => {
    service.begins.loseNext();
    await service.consume(id);
    expect(service.calls).toEqual({ cloudflare: 1 });
    expect(service.rig.engine.listAttempts(id)).toHaveLength(1);
  });

  test('and no key for tokens: there is no Reply-To', async () => {
    service.threadKey = null;
    await service.consume(id);
    expect(handed().reply_to).toBeNull();
    expect(apart(bytesOf(handed())).from).toEqual([`From: desk <${PLATFORM}>\r\n`]);
  });

  test('and an uncertain call is not made again', async () => {
    service.transports.cloudflare.answers.push(TIMEOUT);
    await service.consume(id);
    for (let i = 0; i < 3; i++) await service.consume(id);
    expect(service.calls).toEqual({ cloudflare: 1 });
  });
});

test("a test tenant's message falls back too, and reaches nothing but test transports", async () => {
  service = await Service.create({ tenant: { mode: 'test', policy_json: '{"domain_fallback":true}' } });
  service.rig.composer = createComposer();
  await service.addOwnDomain('ses');
  ({ id } = await service.send({ to: ['delivered@simulator.invalid'] }));
  await service.db.batch([statement("UPDATE domains SET state = 'failing' WHERE kind = 'external'")]);
  await service.consume(id);
  expect(service.calls).toEqual({ simulator: 1 });
  expect(handed('simulator').from.address).toBe('desk.acme@agents.example');
  expect(bytesOf(handed('simulator'))).toContain('From: desk <desk.acme@agents.example>\r\n');
});

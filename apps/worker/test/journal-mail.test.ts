import { createMessageBatch } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import type { IdentityId, MessageId, TenantId } from '@pmail/core/ids.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Env } from '../src/env.ts';
import worker, { IdentityMailbox } from '../src/index.ts';
import { newId } from '../src/ports/random.ts';
import { letter, mailboxRemote, OWNER, waiting } from './mail.ts';
import { deploy, identity, makeKey, tenant } from './support.ts';

/** The hidden copy of a message by Cloudflare, as Email Routing brings it back. */

let owner: TenantId;
let from: IdentityId;
let id: MessageId;
let copyTo: string;

beforeEach(async () => {
  const root = await deploy();
  ({ id: owner } = await tenant(root, 'acme'));
  const key = await makeKey(root, { level: 'tenant', tenant_id: owner });
  ({ id: from } = await identity(root, owner, 'desk', { owner: OWNER, display_name: 'Désk' }));
  ({ id } = await waiting(key, from, letter({ to: ['jo@example.net'], subject: 'Ihre Buchung № 4471' })));
  const copies: string[] = [];
  const send = async ({ bcc }: { bcc: string[] }) => {
    copies.push(...bcc);
    return { messageId: '0101019ab3c4' };
  };
  const body = { v: 1, kind: 'send', tenant_id: owner, identity_id: from, message_id: id, request_id: 'req' };
  const entry = { id: newId('req', Date.now()), timestamp: new Date(), attempts: 1, body };
  const to: Env = { ...env, EMAIL: { send } as unknown as SendEmail };
  await worker.queue(createMessageBatch('pm-outbound', [entry]), to);
  [copyTo = ''] = copies;
});

const COPY = [
  'Received: from mx.cf.example',
  'From: =?UTF-8?Q?D=C3=A9sk?= <desk.acme@agents.example>',
  'Subject: =?UTF-8?Q?Ihre_Buchung_=E2=84=96?=',
  ' =?UTF-8?Q?_4471?=',
  'Message-ID: <7C1E@mx.cf.example>',
  '',
  'From: eve@example.org',
];

/** Brings mail in pieces; answers how many of them were fetched. */
async function receive(to: string, pieces: string[]): Promise<number> {
  let fetched = 0;
  const encoder = new TextEncoder();
  const raw = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        const piece = pieces[fetched++];
        if (piece === undefined) controller.close();
        else controller.enqueue(encoder.encode(piece));
      },
    },
    { highWaterMark: 0 },
  );
  await worker.email({ to, raw } as unknown as ForwardableEmailMessage, env);
  return fetched;
}

async function learned(): Promise<string | null | undefined> {
  const { stub, call } = await mailboxRemote(from);
  return (await stub.getMessage(call, id, { text: false, html: false }, true))?.rfc_message_id;
}

describe('a journal copy', () => {
  test('teaches the message its Message-ID, and what stands under the header is not fetched', async () => {
    const text = COPY.join('\r\n');
    expect(await receive(copyTo.toUpperCase(), [text.slice(0, 90), text.slice(90), 'x', 'y'])).toBe(2);
    expect(await learned()).toBe('7C1E@mx.cf.example');
  });

  test('is taken byte by byte, with bare line feeds, and without a body', async () => {
    await receive(copyTo, COPY.slice(0, 5).join('\n').split(''));
    expect(await learned()).toBe('7C1E@mx.cf.example');
  });

  test.each([
    ['of somebody else', COPY.map((line) => line.replace('desk.acme', 'eve'))],
    ['with another subject', COPY.map((line) => line.replace('4471', '4472'))],
    ['of nothing', []],
    ['with a header that never ends', Array.from({ length: 40 }, () => 'x'.repeat(4_000))],
  ])('%s is taken, and teaches nothing', async (_what, lines) => {
    await receive(copyTo, [lines.join('\r\n')]);
    expect(await learned()).toBeNull();
  });

  test('to an address that names nothing is taken without being read, and teaches nothing', async () => {
    expect(await receive('journal+x@agents.example', [COPY.join('\r\n')])).toBe(0);
    expect(await learned()).toBeNull();
  });
});

describe('within 40 seconds', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  /** The deadline of the handler is over at once; all other waits take their time. */
  function hurry(): void {
    const timeout = globalThis.setTimeout;
    vi.spyOn(globalThis, 'setTimeout').mockImplementation((handler: () => void, ms?: number) =>
      timeout(handler, ms === 40_000 ? 0 : ms),
    );
  }

  test('a sender whose bytes stop coming is told to come again, and half a header teaches nothing', async () => {
    const given = Promise.withResolvers<void>();
    let from: ReadableStreamDefaultController<Uint8Array> | undefined;
    const raw = new ReadableStream<Uint8Array>({
      start: (controller) => {
        from = controller;
      },
      cancel: () => given.resolve(),
    });
    // All that is needed has come, but for the end of the header.
    from?.enqueue(new TextEncoder().encode(COPY.slice(0, 5).join('\r\n')));
    const learn = vi.spyOn(IdentityMailbox.prototype, 'learnMessageId');
    hurry();
    const mail = { to: copyTo, raw } as unknown as ForwardableEmailMessage;
    await expect(worker.email(mail, env)).rejects.toThrow('email took too long');
    await given.promise;
    await scheduler.wait(50);
    expect(learn).not.toHaveBeenCalled();
    expect(await learned()).toBeNull();
  });

  test('a mailbox that does not answer makes the mail come again, which then is taken', async () => {
    const gate = Promise.withResolvers<boolean>();
    const stuck = vi.spyOn(IdentityMailbox.prototype, 'learnMessageId').mockReturnValue(gate.promise as never);
    hurry();
    await expect(receive(copyTo, [COPY.join('\r\n')])).rejects.toThrow('email took too long');
    gate.resolve(false);
    stuck.mockRestore();
    await receive(copyTo, [COPY.join('\r\n')]);
    expect(await learned()).toBe('7C1E@mx.cf.example');
  });
});

test.each(['desk.acme@agents.example', 'journal@agents.example', 'journal+x@acme.example.com'])(
  'other mail, to %s, waits at its sender',
  async (to) => {
    await expect(receive(to, [COPY.join('\r\n')])).rejects.toThrow('not taken in');
  },
);

import { createSign, generateKeyPairSync } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import https from 'node:https';
import { PassThrough } from 'node:stream';
import { bodyOf, confirmation, notification } from '@pmail/core/sns/message.fixture.ts';
import { readSns, type SnsMessage } from '@pmail/core/sns/message.ts';
import { isSignedBy, snsStringToSign } from '@pmail/core/sns/signature.ts';
import fc from 'fast-check';
import MessageValidator from 'sns-validator';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

/** The published validator of SNS messages and ours say the same about every message that is signed. */

const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
const spki = Uint8Array.from(keys.publicKey.export({ type: 'spki', format: 'der' }));

function signed(message: SnsMessage): SnsMessage {
  const signature = createSign('RSA-SHA256').update(snsStringToSign(message), 'utf8').sign(keys.privateKey, 'base64');
  return { ...message, Signature: signature };
}

function theirs(message: SnsMessage): Promise<boolean> {
  return new Promise((resolve) => {
    new MessageValidator().validate(JSON.parse(bodyOf(message)) as Record<string, unknown>, (error) =>
      resolve(error === null),
    );
  });
}

async function ours(message: SnsMessage): Promise<boolean> {
  const read = readSns(bodyOf(message), null);
  return read.ok && (await isSignedBy(read.message, spki));
}

beforeAll(() => {
  // It fetches the certificate itself; a bare key serves it as well.
  vi.spyOn(https, 'get').mockImplementation(((_url: string, answer: (response: IncomingMessage) => void) => {
    const response = Object.assign(new PassThrough(), { statusCode: 200 });
    answer(response as unknown as IncomingMessage);
    response.end(keys.publicKey.export({ type: 'spki', format: 'pem' }));
    return { on: () => undefined } as unknown as ClientRequest;
  }) as typeof https.get);
});
afterAll(() => {
  vi.restoreAllMocks();
});

const line = fc.string({ unit: 'grapheme' }).map((text) => text.toWellFormed().replace(/[\r\n]/g, ' '));
const word = fc.stringMatching(/^[\x21-\x7e]{1,40}$/);
const text = fc.string({ unit: 'grapheme' }).map((value) => value.toWellFormed());

const notifications = fc
  .record({ Message: text, MessageId: word, Subject: fc.option(line) })
  .map((changes) => notification(changes));
const confirmations = fc
  .record({ Message: text, MessageId: word, Token: word })
  .map((changes) => confirmation(changes));

describe('the published validator', () => {
  test.each([
    ['notifications', notifications],
    ['confirmations', confirmations],
  ])('takes what our string to sign was signed for: %s', async (_what, messages) => {
    await fc.assert(
      fc.asyncProperty(messages, async (message) => {
        const ready = signed(message);
        expect(await theirs(ready)).toBe(true);
        expect(await ours(ready)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  test.each([
    ['notifications', notifications],
    ['confirmations', confirmations],
  ])('refuses what was changed afterwards, like ours: %s', async (_what, messages) => {
    const change = fc.constantFrom('Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Token', 'SubscribeURL');
    await fc.assert(
      fc.asyncProperty(messages, change, word, async (message, field, value) => {
        const ready = signed(message);
        const before = (ready as unknown as Record<string, unknown>)[field];
        // A field that is not signed in this type of message changes nothing, and a confirmation has no subject.
        fc.pre(before !== value && before !== undefined);
        const changed = { ...ready, [field]: value };
        expect(await theirs(changed)).toBe(false);
        expect(await ours(changed)).toBe(false);
      }),
      { numRuns: 60 },
    );
  });

  test('leaves the token out when a subscription ends, where the documentation of SNS has it in', async () => {
    const ready = signed(confirmation({ Type: 'UnsubscribeConfirmation' }));
    expect(await ours(ready)).toBe(true);
    expect(await theirs(ready)).toBe(false);
  });
});

// The emulator is a server of Node's, which the transport itself must not know.
// oxlint-disable-next-line typescript/triple-slash-reference
/// <reference types="node" />
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createComposer } from '@pmail/mime/compose.ts';
import { parseMail } from '@pmail/mime/parse.ts';
import emulator from 'aws-ses-v2-local';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { transportContract } from '../contract.ts';
import { ACCOUNT, NOW, outgoing, type SendBody, SesDouble } from './emulator.fixture.ts';
import { type SesInit, sesTransport } from './transport.ts';

transportContract('ses', (situation) => {
  if (situation === 'takes_some') return null;
  const double = new SesDouble(situation);
  const transport = sesTransport({ now: () => NOW, fetch: double.fetch }, ACCOUNT);
  return { transport, message: outgoing(), taken: () => double.taken };
});

describe('a send', () => {
  test('asks SendEmail once, with the stored bytes, our configuration set and our id', async () => {
    const double = new SesDouble('accepts');
    const message = outgoing();
    const result = await sesTransport({ now: () => NOW, fetch: double.fetch }, ACCOUNT).send(message, 30_000);
    expect(result).toMatchObject({
      kind: 'accepted',
      provider_message_id: '0102-1',
      rfc_message_id: '0102-1@eu-west-1.amazonses.com',
    });
    expect(double.requests).toHaveLength(1);
    const [{ url, init, body } = raise()] = double.requests;
    expect(url).toBe('https://email.eu-west-1.amazonaws.com/v2/email/outbound-emails');
    expect(init).toMatchObject({ method: 'POST', redirect: 'manual' });
    expect(init.headers['authorization']).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE\/20261130\/eu-west-1\/ses\/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=[0-9a-f]{64}$/,
    );
    expect(body).toEqual({
      FromEmailAddress: 'desk@acme.example.com',
      Destination: {
        ToAddresses: ['jo@example.net'],
        CcAddresses: ['kim@example.org'],
        BccAddresses: ['audit@example.com'],
      },
      Content: { Raw: { Data: 'RnJvbTr/AA0K' } },
      ConfigurationSetName: 'pylota-mail',
      EmailTags: [{ Name: 'pmail-message', Value: message.message_id }],
    });
  });

  test('never answered is told to stop', async () => {
    let stopped = false;
    const fetch = (_url: string, { signal }: SesInit): Promise<Response> =>
      new Promise(() => signal.addEventListener('abort', () => (stopped = true)));
    const result = await sesTransport({ now: () => NOW, fetch }, ACCOUNT).send(outgoing(), 20);
    expect(result).toEqual({ kind: 'unknown', reason: 'transport_timeout', detail: 'no answer in 20 ms' });
    expect(stopped).toBe(true);
  });

  test('whose answer breaks off after its status is unknown', async () => {
    const body = new ReadableStream({ start: (controller) => controller.error(new TypeError('terminated')) });
    const result = await sesTransport({ now: () => NOW, fetch: async () => new Response(body) }, ACCOUNT).send(
      outgoing(),
      1_000,
    );
    expect(result).toMatchObject({ kind: 'unknown', reason: 'transport_connection_lost' });
  });
});

interface StoredMail {
  messageId: string;
  from: string;
  subject: string;
  body: { text?: string; html?: string };
  destination: { to: string[]; cc: string[]; bcc: string[] };
  attachments: { filename: string; content: string }[];
}

describe('an emulator of SES on this machine', () => {
  let emulated: Server;
  let recorder: Server;
  const seen: { authorization: string | undefined; body: string }[] = [];

  const portOf = (server: Server): number => (server.address() as AddressInfo).port;

  beforeAll(async () => {
    emulated = await emulator({ host: '127.0.0.1', port: 0 });
    // The emulator keeps a message only as parsed, so the bytes are written down on their way.
    recorder = createServer((incoming, answer) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => {
        const body = Buffer.concat(chunks);
        seen.push({ authorization: incoming.headers.authorization, body: body.toString() });
        const { method, url = '', headers } = incoming;
        const onward = httpRequest(
          { host: '127.0.0.1', port: portOf(emulated), method, path: url, headers },
          (reply) => {
            answer.writeHead(reply.statusCode ?? 0, reply.headers);
            reply.pipe(answer);
          },
        );
        onward.end(body);
      });
    });
    await new Promise<void>((resolve) => recorder.listen(0, '127.0.0.1', resolve));
  });

  afterAll(async () => {
    for (const server of [recorder, emulated]) await new Promise((resolve) => server.close(resolve));
  });

  const local = (url: string): string =>
    url.replace('https://email.eu-west-1.amazonaws.com', `http://127.0.0.1:${portOf(recorder)}`);

  test('takes a composed message, and has the same bytes', async () => {
    const file = Uint8Array.from({ length: 3_000 }, (_, index) => (index * 7) % 256);
    const { mime } = await createComposer().compose({
      message_id: 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T',
      date: NOW,
      from: { address: 'desk@acme.example.com', name: 'Désk, Acme' },
      reply_to: { address: 'desk+t01.abcdefgh@acme.example.com', name: 'Désk, Acme' },
      to: [{ address: 'jo@example.net', name: 'Jo' }],
      cc: [],
      subject: 'Your booking № 4471 – a subject long enough to be folded over more than one line of the header',
      text: 'Grüße\n.\n..\nFrom here on, a line of dots.',
      html: '<p>Grüße</p>',
      signature: { text: null, html: null },
      disclosure: { mode: 'none', text: '' },
      unsubscribe: null,
      list_unsubscribe: null,
      forwarded: null,
      in_reply_to: 'a@example.net',
      references: ['a@example.net'],
      auto_submitted: false,
      hop: 1,
      headers: [{ name: 'X-Booking', value: '4471' }],
      attachments: [
        {
          id: 'att_01JD9Q3V7M8X2C4N6B5K1R0E9T',
          filename: 'bytes.bin',
          content_type: 'application/octet-stream',
          disposition: 'attachment',
          content_id: null,
          content: file,
        },
      ],
    });
    const transport = sesTransport({ now: () => NOW, fetch: (url, init) => fetch(local(url), init) }, ACCOUNT);
    const result = await transport.send(outgoing({ mime, bcc: [] }), 10_000);
    if (result.kind !== 'accepted') throw new Error(JSON.stringify(result));
    const [request = raise()] = seen;
    expect(request.authorization).toContain('/eu-west-1/ses/aws4_request');
    const sent = Buffer.from((JSON.parse(request.body) as SendBody).Content.Raw.Data, 'base64');
    expect(sent.equals(mime)).toBe(true);

    const store = await fetch(`http://127.0.0.1:${portOf(emulated)}/store`);
    const { emails } = (await store.json()) as { emails: StoredMail[] };
    const parsed = await parseMail(mime);
    expect(emails).toHaveLength(1);
    expect(emails[0]).toMatchObject({
      messageId: result.provider_message_id,
      from: '"Désk, Acme" <desk@acme.example.com>',
      subject: parsed.subject,
      destination: { to: ['"Jo" <jo@example.net>'] },
      body: { html: parsed.html },
    });
    expect(emails[0]?.body.text?.trim()).toBe(parsed.text?.trim());
    expect(emails[0]?.attachments.map(({ content }) => content)).toEqual([Buffer.from(file).toString('base64')]);
  });

  test('refuses without saying its type, so nobody says that it was not sent', async () => {
    const broken = (url: string, init: SesInit): Promise<Response> => fetch(local(url), { ...init, body: '{}' });
    const result = await sesTransport({ now: () => NOW, fetch: broken }, ACCOUNT).send(outgoing(), 10_000);
    expect(result).toMatchObject({ kind: 'unknown', detail: 'answered 400' });
  });
});

function raise(): never {
  throw new Error('nothing was asked');
}

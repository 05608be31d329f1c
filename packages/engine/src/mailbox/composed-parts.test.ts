import { address } from '@pmail/core/policy/context.fixture.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { bytesOf, copyOf, forward, headerOf, refusalOf, reply, replyAll } from './answers.fixture.ts';
import { arrive } from './inbound.fixture.ts';
import { MailboxRig, type SendOptions } from './mailbox.fixture.ts';

/** What the service adds to a message of its own accord, as identity and policy say: seen in the stored copy. */

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
  rig.composer = createComposer();
});

const trimmed = (text: string | null | undefined): string => (text ?? '').replaceAll('\r\n', '\n').trimEnd();

type Make = (options: SendOptions) => Promise<SendOptions>;

const answering =
  (answer: typeof reply): Make =>
  async (options) =>
    answer((await arrive(rig)).message_id, options);

const OPERATIONS: [string, Make][] = [
  ['send', async (options) => options],
  ['reply', answering(reply)],
  ['reply_all', answering(replyAll)],
  ['forward', answering(forward)],
];

describe.each(OPERATIONS)('a %s', (_operation, make) => {
  test('ends with the AI disclosure in footer mode, in text and HTML', async () => {
    const policy = { ai_disclosure: { mode: 'footer' as const, text: 'Written by <AI>.' } };
    const { id } = await rig.send(await make({ policy, body: { text: 'Hello', html: '<p>Hello</p>' } }));
    const copy = await copyOf(rig, id);
    expect(trimmed(copy.text).endsWith('\n\nWritten by <AI>.')).toBe(true);
    expect(trimmed(copy.html).endsWith('<p>Written by &lt;AI&gt;.</p>')).toBe(true);
    expect(headerOf(rig, id, 'X-AI-Generated')).toBeUndefined();
  });

  test('has the header in header mode, and the bodies as they were', async () => {
    const policy = { ai_disclosure: { mode: 'header' as const, text: 'Written by AI.' } };
    const { id } = await rig.send(await make({ policy, body: { text: 'Hello' } }));
    expect(headerOf(rig, id, 'X-AI-Generated')).toBe('true');
    expect(bytesOf(rig, id)).not.toContain('Written by AI.');
  });

  test('discloses nothing in mode none', async () => {
    const { id } = await rig.send(await make({ body: { text: 'Hello' } }));
    expect(bytesOf(rig, id)).not.toMatch(/X-AI-Generated|AI assistant/);
  });

  test('carries the signature of the identity', async () => {
    const identity = { signature_text: 'Acme\nDesk', signature_html: '<b>Acme</b>' };
    const { id } = await rig.send(await make({ identity, body: { text: 'Hello', html: '<p>Hello</p>' } }));
    const copy = await copyOf(rig, id);
    expect(trimmed(copy.text).endsWith('\n\n-- \nAcme\nDesk')).toBe(true);
    expect(trimmed(copy.html).endsWith('<br><br>-- <br><b>Acme</b>')).toBe(true);
  });

  test('carries the headers of the caller, and shows its labels and metadata to the caller alone', async () => {
    const body = {
      text: 'Hello',
      headers: { 'x-Ticket': '7', importance: 'HIGH' },
      labels: ['a'],
      metadata: { k: 'v1' },
    };
    const message = await rig.send(await make({ body }));
    expect(headerOf(rig, message.id, 'x-Ticket')).toBe('7');
    expect(bytesOf(rig, message.id)).toContain('\r\nImportance: high\r\n');
    expect(message).toMatchObject({ labels: ['a'], metadata: { k: 'v1' } });
    expect(bytesOf(rig, message.id)).not.toMatch(/v1|metadata|label/i);
  });
});

describe('marketing mail', () => {
  const ses = { directory: { addresses: [address({ domain: { transport: 'ses' as const } })] } };
  const body: SendOptions['body'] = {
    kind: 'marketing',
    text: 'Buy!',
    html: '<p>Buy!</p>',
    unsubscribe: { url: 'https://acme.example.com/u?a=1&b=2', mailto: 'u@acme.example.com' },
    consent: { basis: 'signed up', recorded_at: '2026-01-01T00:00:00Z' },
  };

  test('can be unsubscribed from by one click, by mail, and by a line that everybody sees', async () => {
    const { id } = await rig.send({ ...ses, body });
    const url = 'https://acme.example.com/u?a=1&b=2';
    expect(headerOf(rig, id, 'List-Unsubscribe')).toBe(`<${url}>, <mailto:u@acme.example.com>`);
    expect(headerOf(rig, id, 'List-Unsubscribe-Post')).toBe('List-Unsubscribe=One-Click');
    const copy = await copyOf(rig, id);
    expect(trimmed(copy.text).endsWith(`\n\nUnsubscribe: ${url}`)).toBe(true);
    expect(copy.html).toContain('<p><a href="https://acme.example.com/u?a=1&amp;b=2">Unsubscribe</a></p>');
  });

  test('has its parts in one order: text, signature, disclosure, unsubscribe line (R26)', async () => {
    const { id } = await rig.send({
      ...ses,
      body,
      identity: { signature_text: 'Acme' },
      policy: { ai_disclosure: { mode: 'footer', text: 'Written by AI.' } },
    });
    expect(trimmed((await copyOf(rig, id)).text)).toBe(
      'Buy!\n\n-- \nAcme\n\nWritten by AI.\n\nUnsubscribe: https://acme.example.com/u?a=1&b=2',
    );
  });

  test('does not leave by a transport for transactional mail', async () => {
    const answer = await rig.submit({ body });
    expect(refusalOf(answer).code).toBe('transport_unavailable');
    expect(answer).toMatchObject({ details: { reason: 'marketing_needs_ses' } });
  });

  test('may be a forward', async () => {
    const { message_id } = await arrive(rig);
    const { id } = await rig.send(forward(message_id, { ...ses, body }));
    expect(headerOf(rig, id, 'List-Unsubscribe-Post')).toBe('List-Unsubscribe=One-Click');
  });

  test('is the only mail with those headers, whatever the body of another says', async () => {
    const { id } = await rig.send({ body: { ...body, kind: 'transactional' } });
    expect(headerOf(rig, id, 'List-Unsubscribe')).toBeUndefined();
    expect(bytesOf(rig, id)).not.toContain('Unsubscribe');
  });
});

describe('the same requests to two mailboxes', () => {
  const REQUESTS: SendOptions[] = [
    { body: { text: 'Hello' } },
    { body: { to: [{ address: 'jo@example.net', name: '山田 "太郎"' }], subject: 'Grüße', html: '<p>Hello</p>' } },
    { body: { cc: ['kim@example.net'], bcc: ['boss@example.org'], text: '.\r\n..\rFrom x', labels: ['b', 'a'] } },
    {
      body: {
        html: '<p><img src="cid:l"></p>',
        attachments: [
          { filename: '見積書.pdf', content_type: 'application/pdf', content_base64: 'AAEC' },
          {
            filename: 'l.png',
            content_type: 'image/png',
            content_base64: 'AAEC',
            disposition: 'inline',
            content_id: 'l',
          },
        ],
      },
    },
    {
      policy: { large_attachments: 'link' },
      body: {
        attachments: [
          { filename: 'a.bin', content_type: 'application/octet-stream', content_base64: 'AAAA'.repeat(1_400_000) },
        ],
      },
    },
  ];

  async function everyByte(): Promise<{ objects: unknown[]; rows: unknown[] }> {
    rig = new MailboxRig();
    rig.composer = createComposer();
    const { message_id } = await arrive(rig, { raw: 'same', parsed: { rfc_message_id: 'q@example.net' } });
    for (const options of REQUESTS) await rig.send(options);
    for (const answer of [reply, replyAll, forward]) {
      const { id } = await rig.send(answer(message_id));
      await rig.engine.cancel(id);
    }
    return {
      objects: [...rig.blobs.objects].map(([key, { bytes, metadata }]) => [
        key,
        Buffer.from(bytes).toString('latin1'),
        metadata,
      ]),
      rows: rig.sql.all('SELECT id, raw_sha256, references_json, reply_to_json FROM messages ORDER BY rowid'),
    };
  }

  test('with the same clock and chance make the same bytes, objects and rows', async () => {
    const first = await everyByte();
    expect(first.objects.length).toBeGreaterThan(REQUESTS.length + 3);
    expect(await everyByte()).toEqual(first);
  });

  test('repeated to one mailbox differ in nothing but what names the message', async () => {
    const [one, two] = [await rig.send(REQUESTS[1]), await rig.send(REQUESTS[1])];
    const unnamed = (id: string, text: string): string =>
      text
        .replaceAll(id.slice(4).toLowerCase(), 'ID')
        .replaceAll(id.slice(4), 'ID')
        .replace(/\+t[^@]+@/, '+TOKEN@');
    expect(unnamed(two.id, bytesOf(rig, two.id))).toBe(unnamed(one.id, bytesOf(rig, one.id)));
  });
});

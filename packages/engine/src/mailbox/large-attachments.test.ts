import { assembleBodies } from '@pmail/core/compose/bodies.ts';
import { encodedSize, sizeText } from '@pmail/core/compose/size-text.ts';
import { utf8Length } from '@pmail/core/hash.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { readLink } from '@pmail/core/links.ts';
import type { AttachmentInput } from '@pmail/core/message/request.ts';
import { createComposer } from '@pmail/mime/compose.ts';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { copyOf, refusalOf } from './answers.fixture.ts';
import { HOUR, LINK_KEY, MailboxRig, type SendOptions } from './mailbox.fixture.ts';

/** Attachments that do not fit into a message: refused, or linked where the policy says so. */

let rig: MailboxRig;

beforeEach(() => {
  rig = new MailboxRig();
  rig.composer = createComposer();
});

function file(filename: string, size: number, changes: Partial<AttachmentInput> = {}): AttachmentInput {
  const content = Buffer.alloc(size, filename[0]);
  return { filename, content_type: 'application/pdf', content_base64: content.toString('base64'), ...changes };
}

const MB = 1_000_000;

function linking(attachments: AttachmentInput[], options: SendOptions = {}): SendOptions {
  return {
    ...options,
    policy: { large_attachments: 'link', ...options.policy },
    body: { attachments, ...options.body },
  };
}

interface Link {
  name: string;
  size: string;
  token: string;
  until: string;
}

/** The links that a text shows, in its order. */
function linksIn(text: string | null): Link[] {
  const lines = (text ?? '').matchAll(
    /^(.+) \((.+)\): https:\/\/api\.agents\.example\/v1\/links\/(\S+) \(available until (.+)\)\r?$/gm,
  );
  return [...lines].map(([, name = '', size = '', token = '', until = '']) => ({ name, size, token, until }));
}

const FREE = { held: 0, holds: 0, used: 0, counted: 0, tenant: 0 };

describe('a message that is too large', () => {
  test('is refused with its size and the limit, and nothing of it is kept', async () => {
    const answer = await rig.submit({ body: { attachments: [file('a.pdf', 4 * MB)] } });
    expect(answer).toMatchObject({ code: 'message_too_large', details: { limit: LIMITS.composed_bytes_max } });
    const { size } = (answer.ok ? {} : (answer.details ?? {})) as { size?: number };
    expect(size).toBeGreaterThan(LIMITS.composed_bytes_max);
    expect(rig.blobs.objects.size).toBe(0);
    expect(rig.quotaBooks).toEqual(FREE);
    expect(rig.rows('messages')).toBe(0);
  });

  test('is one by the bytes as composed: about 3.8 MB of files fit, and a little more does not', async () => {
    expect((await rig.submit({ key: 'k-1', body: { attachments: [file('a.pdf', 3_824_000)] } })).ok).toBe(true);
    const answer = await rig.submit({ key: 'k-2', body: { attachments: [file('a.pdf', 3_826_000)] } });
    expect(refusalOf(answer).code).toBe('message_too_large');
  });

  test('because of its text is refused whatever the policy says of attachments', async () => {
    const body = { text: 'x'.repeat(5_300_000) };
    expect(refusalOf(await rig.submit(linking([file('a.pdf', 10)], { body }))).code).toBe('message_too_large');
  });

  test('cannot be linked without a key for links', async () => {
    const options = linking([file('a.pdf', 4 * MB)], { keys: { thread: null, link: null } });
    expect(refusalOf(await rig.submit(options)).code).toBe('message_too_large');
  });
});

describe('a file that is linked', () => {
  test('stands in the text with name, size, link and end, and not in the message', async () => {
    const { id } = await rig.send(linking([file('report.pdf', 4 * MB)], { body: { text: 'See the report.' } }));
    const copy = await copyOf(rig, id);
    expect(copy.attachments).toEqual([]);
    expect(copy.text?.startsWith('See the report.\n\nreport.pdf (4.0 MB): https://')).toBe(true);
    const [link] = linksIn(copy.text);
    expect(link).toMatchObject({ name: 'report.pdf', size: '4.0 MB', until: '2026-12-03T09:00:00.000Z' });
    expect(copy.html).toBeNull();
  });

  test('can be fetched by its link until the end: the link names the stored bytes', async () => {
    const message = await rig.send(linking([file('report.pdf', 4 * MB)], { policy: { link_ttl_hours: 5 } }));
    const [link] = linksIn((await copyOf(rig, message.id)).text);
    const expires = rig.clock.now + 5 * HOUR;
    const target = await readLink(LINK_KEY, link?.token ?? '', expires - 1);
    const [stored] = message.attachments;
    expect(target).toEqual({
      ...rig.owner,
      message_id: message.id,
      attachment_id: stored?.id,
      expires: expires / 1_000,
    });
    expect(await readLink(LINK_KEY, link?.token ?? '', expires)).toBeUndefined();
    expect(stored).toMatchObject({ filename: 'report.pdf', size: 4 * MB });
    const location = rig.engine.attachmentLocation(message.id, stored?.id ?? 'att_', false);
    const bytes = rig.blobs.objects.get(location?.r2_key ?? '')?.bytes;
    expect(bytes?.length).toBe(4 * MB);
    expect(bytes?.every((byte) => byte === 'r'.charCodeAt(0))).toBe(true);
  });

  test('is linked in HTML too, where its name cannot become markup', async () => {
    const body = { text: 'See.', html: '<p>See.</p>' };
    const { id } = await rig.send(linking([file('<b>&"x".pdf', 4 * MB)], { body }));
    const { html } = await copyOf(rig, id);
    expect(html).toMatch(
      /^<p>See\.<\/p><p><a href="https:\/\/api\.agents\.example\/v1\/links\/[\w-]+">&lt;b&gt;&amp;&quot;x&quot;\.pdf<\/a> \(4\.0 MB, available until 2026-12-03T09:00:00\.000Z\)<\/p>/,
    );
  });

  test('stands before signature and disclosure', async () => {
    const { id } = await rig.send(
      linking([file('a.pdf', 4 * MB)], {
        body: { text: 'See.' },
        identity: { signature_text: 'Acme' },
        policy: { ai_disclosure: { mode: 'footer', text: 'Written with AI.' } },
      }),
    );
    const { text } = await copyOf(rig, id);
    const places = ['See.', '/v1/links/', '-- \nAcme', 'Written with AI.'].map((part) => (text ?? '').indexOf(part));
    expect(places.every((place) => place >= 0)).toBe(true);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  });

  test('has a link of its own, and a changed one leads nowhere', async () => {
    const { id } = await rig.send(linking([file('a.pdf', 4 * MB), file('b.pdf', 4 * MB)]));
    const [one, two] = linksIn((await copyOf(rig, id)).text);
    expect(one?.token).not.toBe(two?.token);
    const tampered = `${one?.token.slice(0, -1)}${one?.token.endsWith('A') ? 'B' : 'A'}`;
    expect(await readLink(LINK_KEY, tampered, rig.clock.now)).toBeUndefined();
  });
});

describe('which files are linked', () => {
  /** What went along with the message that was composed last. */
  let along: string[];

  beforeEach(() => {
    // Of the right size, without the work of encoding megabytes.
    rig.composer = {
      compose: async (input) => {
        along = input.attachments.map(({ filename }) => filename);
        const { text, html } = assembleBodies(input);
        const files = input.attachments.reduce((sum, { content }) => sum + encodedSize(content.length), 0);
        const mime = new Uint8Array(1_000 + utf8Length(text ?? '') + utf8Length(html ?? '') + files);
        return { mime, rfc_message_id: 'x@acme.example.com', text, html, html_sanitized: html };
      },
    };
  });

  async function linkedOf(options: SendOptions): Promise<string[]> {
    const { id } = await rig.send(options);
    return linksIn(rig.message(id).text).map(({ name }) => name);
  }

  test('the largest first, until the rest fits; the others go along as they are', async () => {
    const files = [file('a.pdf', MB), file('b.pdf', 3 * MB), file('c.pdf', 2 * MB), file('d.pdf', MB / 2)];
    expect(await linkedOf(linking(files))).toEqual(['b.pdf']);
    expect(along).toEqual(['a.pdf', 'c.pdf', 'd.pdf']);
    expect(await linkedOf(linking([...files, file('e.pdf', 3 * MB)]))).toEqual(['b.pdf', 'e.pdf']);
  });

  test('none, while the message fits', async () => {
    expect(await linkedOf(linking([file('a.pdf', MB), file('b.pdf', 2 * MB)]))).toEqual([]);
    expect(along).toEqual(['a.pdf', 'b.pdf']);
  });

  test('images inside the HTML last, because the text would lose them', async () => {
    const image = file('logo.png', 3 * MB, { content_type: 'image/png', disposition: 'inline', content_id: 'logo' });
    const body = { html: '<p><img src="cid:logo"></p>' };
    expect(await linkedOf(linking([image, file('a.pdf', 2 * MB)], { body }))).toEqual(['a.pdf']);
    expect(along).toEqual(['logo.png']);
  });

  test('as many as it takes, all of them if need be', async () => {
    const files = Array.from({ length: 4 }, (_, i) => file(`${i}.pdf`, 1.2 * MB));
    expect(await linkedOf(linking(files))).toEqual(['0.pdf']);
    const body = { text: `${'x'.repeat(5_200_000)}\n` };
    const { id, attachments } = await rig.send(linking(files, { body }));
    expect(along).toEqual([]);
    // The row holds less of so long a text, the links at its end included.
    expect(rig.message(id).flags).toEqual(['body_truncated']);
    expect(attachments).toHaveLength(4);
  });

  test('so that the message fits whatever files it has, and every file is either there or linked', async () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 15 }), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.boolean(), async (list, html) => {
        const size = (name: string): number => (list[Number.parseInt(name, 10)] ?? 0) * 100_000;
        const files = list.map((_size, i) => file(`${i}.pdf`, size(`${i}`)));
        const message = await rig.send(linking(files, html ? { body: { html: '<p>x</p>' } } : {}));
        const stored = rig.sql.first<{ raw_size: number }>('SELECT raw_size FROM messages WHERE id = ?', message.id);
        expect(stored?.raw_size).toBeLessThanOrEqual(LIMITS.composed_bytes_max);
        const links = linksIn(rig.message(message.id).text);
        expect([...along, ...links.map(({ name }) => name)].toSorted()).toEqual(files.map(({ filename }) => filename));
        for (const link of links) expect(link.size).toBe(sizeText(size(link.name)));
        // Nothing that stayed is larger than something that was linked.
        const smallest = Math.min(...links.map(({ name }) => size(name)));
        expect(Math.max(0, ...along.map(size))).toBeLessThanOrEqual(smallest);
        rig.blobs.objects.clear();
      }),
      { numRuns: 12 },
    );
  }, 30_000);
});

test('a dry run links in memory and stores nothing', async () => {
  expect(await rig.dryRun(linking([file('a.pdf', 4 * MB)]))).toMatchObject({ ok: true });
  expect(await rig.dryRun({ body: { attachments: [file('a.pdf', 4 * MB)] } })).toMatchObject({
    code: 'message_too_large',
  });
  expect(rig.blobs.puts.calls).toBe(0);
});

import { describe, expect, it } from 'vitest';
import { fromBase64Url, toBase64Url } from './hash.ts';
import { type LinkKey, type LinkTarget, linkKid, mintLink, readLink } from './links.ts';

const key: LinkKey = { kid: 'a', secret: new Uint8Array(32).fill(3) };
const target = {
  tenant_id: 'ten_01JD0000000000000000000001',
  identity_id: 'idn_01JD0000000000000000000001',
  message_id: 'msg_01JD0000000000000000000001',
  attachment_id: 'att_01JD0000000000000000000001',
  expires: 2_000,
} as LinkTarget;

describe('signed links', () => {
  it('lead back to what they were made for until they expire', async () => {
    const token = await mintLink(key, target);
    expect(token).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(linkKid(token)).toBe('a');
    expect(await readLink(key, token, 1_999_999)).toEqual(target);
    expect(await readLink(key, token, 2_000_000)).toBeUndefined();
  });

  it('are nothing with any byte changed, another key or another key id', async () => {
    const token = await mintLink(key, target);
    const bytes = fromBase64Url(token) ?? new Uint8Array(0);
    for (let i = 0; i < bytes.length; i++) {
      const changed = Uint8Array.from(bytes);
      changed[i] = (changed[i] ?? 0) ^ 1;
      expect(await readLink(key, toBase64Url(changed), 0)).toBeUndefined();
    }
    expect(await readLink({ ...key, secret: new Uint8Array(32) }, token, 0)).toBeUndefined();
    expect(await readLink({ ...key, kid: 'b' }, token, 0)).toBeUndefined();
  });

  it('say nothing about what is no link at all', async () => {
    for (const text of ['', 'x', '!!', 'AAAA', toBase64Url(new Uint8Array(16)), toBase64Url(new Uint8Array(64))]) {
      expect(await readLink(key, text, 0)).toBeUndefined();
    }
    expect(linkKid('')).toBeUndefined();
  });
});

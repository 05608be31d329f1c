import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sha256, toBase64Url, toHex, utf8 } from './hash.ts';
import { type SealPlace, seal, unseal } from './seal.ts';

const KEY = new Uint8Array(32).fill(7);
const OTHER = new Uint8Array(32).fill(8);
const NONCE = Uint8Array.from({ length: 12 }, (_, i) => i);
const PLACE: SealPlace = { table: 'domains', column: 'smtp_sealed', row: 'dom_01JD9Q3V7M8X2C4N6B5K1R0E9T' };
const SECRET = utf8('correct horse battery staple');

const bytes = (length: number) =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((data) => new Uint8Array(data));

describe('a sealed value', () => {
  it('names version, key and nonce, and hides the rest', async () => {
    const sealed = await seal(KEY, PLACE, SECRET, NONCE);
    const [version, kid, nonce, text, ...rest] = sealed.split('.');
    expect(version).toBe('pm1');
    expect(kid).toBe(toHex(await sha256(KEY)).slice(0, 16));
    expect(nonce).toBe(toBase64Url(NONCE));
    // AES-GCM adds a tag of 16 bytes.
    expect(text).toHaveLength(Math.ceil(((SECRET.length + 16) * 8) / 6));
    expect(rest).toEqual([]);
    expect(sealed).not.toContain(toBase64Url(SECRET));
  });

  it('opens again with its key, for any secret', async () => {
    const secret = fc.uint8Array({ maxLength: 300 }).map((data) => new Uint8Array(data));
    await fc.assert(
      fc.asyncProperty(bytes(32), bytes(12), secret, async (key, nonce, value) => {
        expect(await unseal([key], PLACE, await seal(key, PLACE, value, nonce))).toEqual(value);
      }),
    );
  });

  it('opens with any of several keys, as during a rotation', async () => {
    const sealed = await seal(KEY, PLACE, SECRET, NONCE);
    expect(await unseal([OTHER, KEY], PLACE, sealed)).toEqual(SECRET);
    expect(await unseal([KEY, OTHER], PLACE, sealed)).toEqual(SECRET);
  });

  it('does not open with another key, or with none', async () => {
    const sealed = await seal(KEY, PLACE, SECRET, NONCE);
    expect(await unseal([OTHER], PLACE, sealed)).toBeUndefined();
    expect(await unseal([], PLACE, sealed)).toBeUndefined();
  });

  it('does not open under another key that is passed off as its own', async () => {
    const [version, , ...rest] = (await seal(KEY, PLACE, SECRET, NONCE)).split('.');
    const kid = toHex(await sha256(OTHER)).slice(0, 16);
    expect(await unseal([OTHER], PLACE, [version, kid, ...rest].join('.'))).toBeUndefined();
  });

  it.each<[string, Partial<SealPlace>]>([
    ['table', { table: 'webhooks' }],
    ['column', { column: 'smtp_pending_sealed' }],
    ['row', { row: 'dom_01JD9Q3V7M8X2C4N6B5K1R0E9V' }],
  ])('does not open in another %s', async (_what, moved) => {
    const sealed = await seal(KEY, PLACE, SECRET, NONCE);
    expect(await unseal([KEY], { ...PLACE, ...moved }, sealed)).toBeUndefined();
  });

  it('does not open after any change of any character', async () => {
    const sealed = await seal(KEY, PLACE, SECRET, NONCE);
    for (let i = 0; i < sealed.length; i++) {
      for (const char of ['A', 'B', '.', '=', '']) {
        const changed = sealed.slice(0, i) + char + sealed.slice(i + 1);
        if (changed !== sealed) expect(await unseal([KEY], PLACE, changed)).toBeUndefined();
      }
    }
  });

  it('does not open with anything added or missing', async () => {
    const sealed = await seal(KEY, PLACE, SECRET, NONCE);
    for (const text of ['', '.', 'pm1', 'pm1...', `${sealed}.x`, `${sealed}.`, `.${sealed}`, sealed.slice(0, -4)]) {
      expect(await unseal([KEY], PLACE, text)).toBeUndefined();
    }
    const [, kid, nonce, text] = sealed.split('.');
    expect(await unseal([KEY], PLACE, `pm2.${kid}.${nonce}.${text}`)).toBeUndefined();
    expect(await unseal([KEY], PLACE, `pm1.${kid}.${nonce?.slice(0, 8)}.${text}`)).toBeUndefined();
  });

  it('never throws on text that was never sealed', async () => {
    const part = fc.string({ unit: fc.constantFrom('A', 'z', '-', '_', '0', '.'), maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(part, async (text) => {
        expect(await unseal([KEY], PLACE, `pm1.${text}`)).toBeUndefined();
      }),
    );
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { IdentityId } from '../ids.ts';
import { checkThreadToken, mintThreadToken, type ThreadKey, withoutToken } from './token.ts';

const IDENTITY = 'idn_01JD0000000000000000000001' as IdentityId;
const OTHER = 'idn_01JD0000000000000000000002' as IdentityId;
const key: ThreadKey = { kid: '0', secret: new Uint8Array(32).fill(9) };
const old: ThreadKey = { kid: '1', secret: new Uint8Array(32).fill(8) };

describe('thread tokens', () => {
  it('have the shape that fits behind a local part: kid, number, dot, eight characters', async () => {
    const token = await mintThreadToken(key, IDENTITY, 115);
    expect(token).toMatch(/^t03k\.[0-9a-hjkmnp-tv-z]{8}$/);
    // 40 characters of local part, a plus and the longest token stay within the 64 octets of RFC 5321.
    expect((await mintThreadToken(key, IDENTITY, Number.MAX_SAFE_INTEGER)).length + 41).toBeLessThanOrEqual(64);
  });

  it('come back as the thread they were made for, with any key that is still in the ring', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
        fc.constantFrom(key, old),
        async (seq, by) => {
          const token = await mintThreadToken(by, IDENTITY, seq);
          expect(await checkThreadToken([key, old], IDENTITY, token)).toEqual({ kind: 'valid', seq, kid: by.kid });
        },
      ),
    );
  });

  it('are invalid for another identity, another thread, an unknown key, or with one character changed', async () => {
    const token = await mintThreadToken(key, IDENTITY, 7);
    expect(await checkThreadToken([key], OTHER, token)).toEqual({ kind: 'invalid' });
    expect(await checkThreadToken([old], IDENTITY, token)).toEqual({ kind: 'invalid' });
    expect(await checkThreadToken([key], IDENTITY, token.replace('t07', 't08'))).toEqual({ kind: 'invalid' });
    const last = token.at(-1) === '0' ? '1' : '0';
    expect(await checkThreadToken([key], IDENTITY, token.slice(0, -1) + last)).toEqual({ kind: 'invalid' });
  });

  it('leave ordinary tags alone', async () => {
    for (const detail of [
      '',
      'news',
      't',
      't0',
      't03k',
      't03k.9f2mq7x',
      't00k.9f2mq7xa',
      't03k.9f2mq7xil',
      'T03k.9f2mq7xa',
    ]) {
      expect(await checkThreadToken([key], IDENTITY, detail)).toEqual({ kind: 'absent' });
    }
  });

  it('are taken out of an address, and nothing else is', async () => {
    const token = await mintThreadToken(key, IDENTITY, 1_234_567);
    expect(withoutToken(`desk+${token}@agents.example`)).toBe('desk@agents.example');
    for (const other of [
      'desk',
      'desk+news',
      'desk+t',
      `desk+${token}x`,
      `desk+x+${token}`,
      `+${token}`,
      `"a+${token}"`,
    ]) {
      expect(withoutToken(`${other}@agents.example`)).toBe(`${other}@agents.example`);
    }
  });
});

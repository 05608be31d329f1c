import { describe, expect, test } from 'vitest';
import { hmacSha256, utf8 } from '../hash.ts';
import type { MessageId } from '../ids.ts';
import { envelopeId, isEnvelopeIdOf } from './envelope-id.ts';

const ID: MessageId = 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T';
const OTHER: MessageId = 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9V';
const hmac = (text: string) => hmacSha256(utf8('k'.repeat(32)), text);

describe("the envelope's id", () => {
  test('is the same for every attempt, and can stand in a command as it is', async () => {
    const id = await envelopeId(hmac, ID);
    expect(id).toMatch(/^01jd9q3v7m8x2c4n6b5k1r0e9t\.[0-9a-f]{32}$/);
    expect(await envelopeId(hmac, ID)).toBe(id);
  });

  test('is known again, and nothing else is', async () => {
    const id = await envelopeId(hmac, ID);
    expect(await isEnvelopeIdOf(hmac, ` ${id} `, ID)).toBe(true);
    const another = (text: string) => hmacSha256(utf8('x'.repeat(32)), text);
    for (const named of [null, '', id.slice(0, -1), `${id}0`, id.replace(/.$/, 'x'), await envelopeId(hmac, OTHER)]) {
      expect(await isEnvelopeIdOf(hmac, named, ID), String(named)).toBe(false);
    }
    expect(await isEnvelopeIdOf(another, id, ID)).toBe(false);
  });
});

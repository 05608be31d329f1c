import { describe, expect, it } from 'vitest';
import { runLate } from '../context.fixture.ts';
import { size } from './17-size.ts';

/** 5 MiB less 8 KiB for the headers that transports add. */
const LIMIT = 5 * 1024 * 1024 - 8 * 1024;

describe('step 17: the size as composed', () => {
  it('lets a message of exactly the limit pass', () => {
    expect(runLate(size, { composed_bytes: LIMIT })).toBeNull();
  });

  it('refuses one byte more and says both numbers', () => {
    expect(runLate(size, { composed_bytes: LIMIT + 1 })).toEqual({
      ok: false,
      code: 'message_too_large',
      details: { size: LIMIT + 1, limit: LIMIT },
    });
  });
});

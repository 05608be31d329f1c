import { describe, expect, it } from 'vitest';
import { LIMITS } from '../limits.ts';
import { address, NOW, type Overrides, platformAddress, sendContext, thread } from './context.fixture.ts';
import { selectFrom } from './from.ts';

const PRIMARY = address();
const ALIAS = address({ address: 'sales@acme.example.com', role: 'alias' });
const RETIRING = address({ address: 'old@acme.example.com', role: 'alias', status: 'retiring' });
const RETIRED = address({ address: 'gone@acme.example.com', role: 'alias', status: 'retired' });
const PENDING = address({ address: 'new@acme.example.com', role: 'alias', status: 'pending' });
const PLATFORM = platformAddress();
const ADDRESSES = [ALIAS, PRIMARY, RETIRING, RETIRED, PENDING, PLATFORM];

function from(overrides: Overrides = {}, addresses = ADDRESSES): string {
  const selected = selectFrom(sendContext({ ...overrides, directory: { addresses } }));
  return typeof selected === 'string' ? `refused: ${selected}` : selected.address;
}

function explicit(from_address: string, overrides: Overrides = {}): string {
  return from({ ...overrides, body: { from_address } });
}

const REFUSED = /^refused: /;

describe('the From address of a new thread', () => {
  it('is the primary', () => {
    expect(from()).toBe(PRIMARY.address);
  });

  it('is the one asked for, when it is active', () => {
    expect(explicit(ALIAS.address)).toBe(ALIAS.address);
    expect(explicit(PLATFORM.address)).toBe(PLATFORM.address);
    expect(explicit(' Sales@ACME.example.com ')).toBe(ALIAS.address);
  });

  it('cannot be one that is retiring, retired, unknown or no address at all', () => {
    for (const wish of [RETIRING.address, RETIRED.address, 'jo@example.net', 'desk+tag@acme.example.com', 'desk', '']) {
      expect(explicit(wish)).toMatch(REFUSED);
    }
  });

  it('may be one that is pending, which the next step answers', () => {
    expect(explicit(PENDING.address)).toBe(PENDING.address);
  });

  it('is none when the identity has no primary', () => {
    expect(from({}, [ALIAS])).toMatch(REFUSED);
  });

  it('cannot be on a domain that only receives', () => {
    const silent = address({ domain: { sending: false } });
    expect(from({}, [silent])).toMatch(REFUSED);
    expect(from({ body: { from_address: silent.address } }, [silent])).toMatch(REFUSED);
  });
});

describe('the From address in a thread', () => {
  it('is the one the thread answers from, retiring or not', () => {
    expect(from({ thread: thread({ reply_from_address: ALIAS.address }) })).toBe(ALIAS.address);
    expect(from({ thread: thread({ reply_from_address: RETIRING.address }) })).toBe(RETIRING.address);
  });

  it('is the primary where the thread has none, or one that can no longer send', () => {
    for (const reply_from_address of [null, RETIRED.address, PENDING.address, 'elsewhere@example.net']) {
      expect(from({ thread: thread({ reply_from_address }) })).toBe(PRIMARY.address);
    }
  });

  it('is the platform address while the thread is pinned to it', () => {
    const pinned = thread({ reply_from_address: ALIAS.address, fallback_pinned: true });
    expect(from({ thread: pinned })).toBe(PLATFORM.address);
  });

  it('is that of before again when its domain is well and the thread has been quiet for 72 hours', () => {
    const quiet = LIMITS.fallback_quiet_ms_min;
    const pinned = (last_at: number) =>
      thread({ reply_from_address: ALIAS.address, fallback_pinned: true, last_at: NOW - last_at });
    expect(from({ thread: pinned(quiet) })).toBe(PLATFORM.address);
    expect(from({ thread: pinned(quiet + 1) })).toBe(ALIAS.address);
    for (const state of ['degraded', 'failing', 'verifying'] as const) {
      const alias = { ...ALIAS, domain: { ...ALIAS.domain, state } };
      const addresses = ADDRESSES.map((entry) => (entry === ALIAS ? alias : entry));
      expect(from({ thread: pinned(quiet * 9) }, addresses)).toBe(PLATFORM.address);
    }
  });

  it('is the one asked for even while the thread is pinned', () => {
    expect(explicit(ALIAS.address, { thread: thread({ fallback_pinned: true }) })).toBe(ALIAS.address);
  });

  it('may be a retiring one only where the thread already uses it', () => {
    const uses = [
      thread({ reply_from_address: RETIRING.address }),
      thread({ reply_from_address: PRIMARY.address, used_from: [RETIRING.address] }),
    ];
    for (const known of uses) expect(explicit(RETIRING.address, { thread: known })).toBe(RETIRING.address);
    const other = thread({ reply_from_address: PRIMARY.address, used_from: [ALIAS.address] });
    expect(explicit(RETIRING.address, { thread: other })).toMatch(REFUSED);
  });

  it('can never be a retired one, even where the thread used it', () => {
    const used = thread({ reply_from_address: RETIRED.address, used_from: [RETIRED.address] });
    expect(explicit(RETIRED.address, { thread: used })).toMatch(REFUSED);
  });
});

import { describe, expect, it } from 'vitest';
import { type Overrides, sendContext } from './context.fixture.ts';
import { filterReason, filterText, isSuppression } from './filters.ts';
import type { FilterReason } from './types.ts';

const JO = 'jo@example.net';

function reason(overrides: Overrides = {}, to = JO): FilterReason | null {
  return filterReason(sendContext(overrides), to);
}

const SUPPRESSED: Overrides = { directory: { suppressions: { [JO]: 'manual' } } };

describe('why a recipient is not written to', () => {
  it('is nothing by default', () => {
    expect(reason()).toBeNull();
  });

  it.each(['hard_bounce', 'complaint', 'unsubscribe', 'manual', 'provider'] as const)(
    'is an entry of the suppression list: %s',
    (entry) => {
      expect(reason({ directory: { suppressions: { [JO]: entry } } })).toBe(entry);
      expect(reason({ directory: { suppressions: { 'other@example.net': entry } } })).toBeNull();
    },
  );

  it('is no inherited property that has the name of an address', () => {
    expect(reason({}, 'constructor')).toBeNull();
    expect(reason({}, '__proto__')).toBeNull();
  });

  it('is a block of the address or of its domain', () => {
    expect(reason({ directory: { send_block: [JO] } })).toBe('send_block');
    expect(reason({ directory: { send_block: ['@example.net'] } })).toBe('send_block');
    expect(reason({ directory: { send_block: ['@net', '@sub.example.net', 'ajo@example.net'] } })).toBeNull();
  });

  it('is its absence from the allow list, where only that list may be written to', () => {
    const only: Overrides['policy'] = { send_allowlist_only: true };
    expect(reason({ policy: only })).toBe('not_on_allowlist');
    expect(reason({ policy: only, directory: { send_allow: [JO] } })).toBeNull();
    expect(reason({ policy: only, directory: { send_allow: ['@example.net'] } })).toBeNull();
    expect(reason({ directory: { send_allow: ['other@example.org'] } })).toBeNull();
  });

  it('is that nothing was exchanged with it, where the identity asks for that', () => {
    const strict: Overrides = { identity: { send_policy: { require_known_recipient: true } } };
    expect(reason(strict)).toBe('unknown_recipient');
    expect(reason({ ...strict, is_known_contact: (address) => address === JO })).toBeNull();
    expect(reason({ identity: { send_policy: { require_known_recipient: false } } })).toBeNull();
  });

  it('is the first rule that matches: suppression, block, allow list, known recipient', () => {
    const all: Overrides = {
      policy: { send_allowlist_only: true },
      identity: { send_policy: { require_known_recipient: true } },
    };
    expect(reason({ ...all, directory: { ...SUPPRESSED.directory, send_block: [JO] } })).toBe('manual');
    expect(reason({ ...all, directory: { send_block: [JO], send_allow: [JO] } })).toBe('send_block');
    expect(reason(all)).toBe('not_on_allowlist');
    expect(reason({ ...all, directory: { send_allow: [JO] } })).toBe('unknown_recipient');
  });
});

describe('how a delivery records the rule', () => {
  it.each([
    ['hard_bounce', 'policy: suppression (hard_bounce)', true],
    ['complaint', 'policy: suppression (complaint)', true],
    ['unsubscribe', 'policy: suppression (unsubscribe)', true],
    ['manual', 'policy: suppression (manual)', true],
    ['provider', 'policy: suppression (provider)', true],
    ['send_block', 'policy: send_block', false],
    ['not_on_allowlist', 'policy: not_on_allowlist', false],
    ['unknown_recipient', 'policy: unknown_recipient', false],
  ] as const)('%s', (entry, text, suppression) => {
    expect(filterText(entry)).toBe(text);
    expect(isSuppression(entry)).toBe(suppression);
  });
});

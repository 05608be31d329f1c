import { describe, expect, it } from 'vitest';
import { bounceClass, judgeBounce, judgeOther } from './bounce-class.ts';

const HARD = { hard: true, outcome: 'bounced', suppress: 'hard_bounce' };
const HARD_KEPT = { hard: true, outcome: 'bounced', suppress: null };
const SOFT = { hard: false, outcome: 'other', suppress: null };

describe('what a code says', () => {
  it.each([
    ['5.1.1', 'address'],
    ['5.1.0', 'address'],
    ['5.1.10', 'address'],
    ['5.2.1', 'address'],
    ['5.2.2', 'mailbox_full'],
    ['4.2.2', 'mailbox_full'],
    ['5.3.0', 'system'],
    ['5.3.4', 'system'],
    ['5.4.1', 'system'],
    ['5.4.4', 'system'],
    ['5.7.1', 'system'],
    ['5.7.26', 'system'],
    ['4.0.0', 'transient'],
    ['4.4.7', 'transient'],
    ['4.7.0', 'transient'],
    ['5.0.0', 'address'],
    ['5.2.0', 'address'],
    ['5.2.3', 'system'],
    ['5.2.4', 'system'],
    ['5.2.30', 'address'],
    ['5.5.0', 'system'],
    ['5.5.4', 'system'],
    ['5.6.0', 'system'],
    ['5.6.7', 'system'],
  ] as const)('%s: %s', (code, kind) => {
    expect(bounceClass(code, null)).toBe(kind);
  });

  it('is read from the enhanced code before the reply code', () => {
    expect(bounceClass('4.2.0', '550')).toBe('transient');
    expect(bounceClass('5.7.1', '451')).toBe('system');
    expect(bounceClass('5.2.2', '550')).toBe('mailbox_full');
  });

  it('is read from the reply code where there is no enhanced one', () => {
    for (const enhanced of [null, '', '5', '5.1', '5.1.1.1', 'x5.1.1', '5.1.1 ', '6.1.1', '5.1000.1', '2.0.0']) {
      expect(bounceClass(enhanced, '550')).toBe('address');
      expect(bounceClass(enhanced, '451')).toBe('transient');
      expect(bounceClass(enhanced, null)).toBe('unspecified');
    }
  });
});

describe('a bounce of which the provider says nothing more', () => {
  it.each([
    ['5.1.1', '550', HARD],
    ['5.2.1', '550', HARD],
    ['5.2.2', '552', SOFT],
    ['5.3.2', '554', HARD_KEPT],
    ['5.4.1', '550', HARD_KEPT],
    ['5.7.1', '550', HARD_KEPT],
    ['5.2.3', '552', HARD_KEPT],
    ['5.5.2', '500', HARD_KEPT],
    ['5.6.1', '554', HARD_KEPT],
    ['4.2.1', '450', SOFT],
    ['5.0.0', null, HARD],
    [null, '550', HARD],
    [null, '421', SOFT],
    [null, null, SOFT],
  ])('enhanced %s, reply %s', (enhanced, reply, verdict) => {
    expect(judgeBounce(null, enhanced, reply)).toEqual(verdict);
  });
});

describe('a bounce that the provider calls hard or soft', () => {
  it('is what the provider says, and the code only decides about the suppression', () => {
    expect(judgeBounce('hard', '5.1.1', '550')).toEqual(HARD);
    expect(judgeBounce('hard', '5.7.1', '550')).toEqual(HARD_KEPT);
    expect(judgeBounce('hard', '5.3.0', null)).toEqual(HARD_KEPT);
    expect(judgeBounce('hard', null, null)).toEqual(HARD);
    expect(judgeBounce('soft', '5.1.1', '550')).toEqual(SOFT);
    expect(judgeBounce('soft', '4.4.7', null)).toEqual(SOFT);
    expect(judgeBounce('soft', null, null)).toEqual(SOFT);
  });

  it('is soft for a full mailbox whatever the provider says', () => {
    expect(judgeBounce('hard', '5.2.2', '552')).toEqual(SOFT);
  });
});

describe('what other reports mean', () => {
  it('for the abuse windows and the suppression list', () => {
    expect(judgeOther('delivered')).toEqual({ outcome: 'delivered', suppress: null });
    expect(judgeOther('complained')).toEqual({ outcome: 'complained', suppress: 'complaint' });
    expect(judgeOther('failed')).toEqual({ outcome: 'other', suppress: null });
    expect(judgeOther('rejected')).toEqual({ outcome: 'other', suppress: null });
    expect(judgeOther('deferred')).toBeNull();
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { codePoints } from '../address/names.ts';
import { EMPTY_SUBJECT, normalizeSubject, prefixedSubject } from './subject.ts';

/** The prefixes of the design, in lower case. */
const PREFIXES =
  're fw fwd aw wg sv vs vb antw doorst tr rif enc res rv odp pd ynt ilt atb πληρ σχετ ответ 回复 回覆 答复 转发 轉寄'.split(
    ' ',
  );

describe('a subject without its prefixes', () => {
  it.each(PREFIXES)('loses %s in any case, with either colon, with or without a counter', (prefix) => {
    for (const spelled of [prefix, prefix.toUpperCase(), prefix[0]?.toUpperCase() + prefix.slice(1)]) {
      for (const colon of [':', ': ', ' :', '：', '[2]: ', '(3): ', ' [12] : ']) {
        expect(normalizeSubject(`${spelled}${colon}Booking`)).toBe('Booking');
      }
    }
  });

  it.each(['İLT: Booking', 'İlt: Booking', 'i̇lt: Booking'])(
    'loses the Turkish one with its dotted capital: %s',
    (subject) => {
      expect(normalizeSubject(subject)).toBe('Booking');
    },
  );

  it('loses a single i or r only before a colon and a blank', () => {
    for (const subject of ['I: Booking', 'r: Booking', 'R[2]: Booking', 'i(3): Booking']) {
      expect(normalizeSubject(subject)).toBe('Booking');
    }
    for (const subject of ['I:Booking', 'R:x', 'i : Booking', 'r：Booking', 'I']) {
      expect(normalizeSubject(subject)).toBe(subject);
    }
  });

  it.each([
    'Reminder: pay',
    'Re Booking',
    'Research: results',
    'Fwdx: y',
    'xRe: y',
    'Re[abc]: y',
    'Re[1234]: y',
    'Booking Re: y',
    'Tra: y',
  ])('keeps what only looks like one: %s', (subject) => {
    expect(normalizeSubject(subject)).toBe(subject);
  });

  it.each([
    ['Re: Fwd: AW: Booking', 'Booking'],
    ['RE:re:Re:Booking', 'Booking'],
    ['Re: [list] Booking', '[list] Booking'],
    ['[list] Re: Booking', '[list] Booking'],
    ['Re: [list] Fwd: Re: Booking', '[list] Booking'],
    ['[list]Re:Booking', '[list] Booking'],
    ['[list] Re:', '[list]'],
    ['[list] Booking', '[list] Booking'],
    ['[a] [b] Re: Booking', '[a] [b] Re: Booking'],
    [`[${'x'.repeat(40)}] Re: Booking`, `[${'x'.repeat(40)}] Booking`],
    [`[${'x'.repeat(41)}] Re: Booking`, `[${'x'.repeat(41)}] Re: Booking`],
  ])('%s becomes %s', (subject, normal) => {
    expect(normalizeSubject(subject)).toBe(normal);
  });

  it('loses every prefix, however many there are', () => {
    expect(normalizeSubject(`${'Re: '.repeat(11)}Booking`)).toBe('Booking');
    expect(normalizeSubject(`${'Re: Fwd: '.repeat(20_000)}Booking`)).toBe('Booking');
  });

  it('is one line with single blanks', () => {
    expect(normalizeSubject(' Your \t booking\r\n 4471\u0000\u0085! ')).toBe('Your booking 4471 !');
    expect(normalizeSubject('a\r\nBcc: x@example.net')).toBe('a Bcc: x@example.net');
  });

  it.each(['', '  ', 'Re:', 'Re: Fwd: ', '\r\n', EMPTY_SUBJECT, `Re: ${EMPTY_SUBJECT}`])(
    'is never empty: %j',
    (subject) => {
      expect(normalizeSubject(subject)).toBe('(no subject)');
    },
  );

  it('has at most 998 characters', () => {
    expect(normalizeSubject('😀'.repeat(998))).toBe('😀'.repeat(998));
    expect(normalizeSubject('😀'.repeat(1_500))).toBe('😀'.repeat(998));
    expect(normalizeSubject(`Re: ${'x'.repeat(998)}`)).toBe('x'.repeat(998));
    expect(normalizeSubject(`${'x'.repeat(997)} y`)).toBe('x'.repeat(997));
  });
});

const token = fc.constantFrom(
  'Re',
  'FWD',
  'aw',
  'i',
  'R',
  'İLT',
  '回复',
  ':',
  '：',
  ': ',
  ' ',
  '[2]',
  '(3)',
  '[list]',
  '[',
  ']',
  'x',
  'Booking',
  '\t',
  '\u0085',
  '😀',
  'y'.repeat(500),
);
const subject = fc.array(token, { maxLength: 40 }).map((tokens) => tokens.join(''));

describe('normalising', () => {
  it('twice is the same as once', () => {
    fc.assert(
      fc.property(fc.oneof(subject, fc.string({ unit: 'binary' })), (text) => {
        const once = normalizeSubject(text);
        expect(normalizeSubject(once)).toBe(once);
      }),
      { numRuns: 3_000 },
    );
  });

  it('gives one clean line within the limit', () => {
    fc.assert(
      fc.property(subject, (text) => {
        const once = normalizeSubject(text);
        expect(once).toBe(once.trim());
        expect(once).not.toMatch(/[\x00-\x1f\x7f-\x9f]| {2}/);
        expect(once).not.toBe('');
        expect(codePoints(once)).toBeLessThanOrEqual(998);
      }),
    );
  });
});

describe('the subject of an answer', () => {
  it('is the normal one behind one prefix', () => {
    expect(prefixedSubject('Re', 'Booking')).toBe('Re: Booking');
    expect(prefixedSubject('Re', 'AW: Re: Booking')).toBe('Re: Booking');
    expect(prefixedSubject('Fwd', 'Re: Booking')).toBe('Fwd: Booking');
    expect(prefixedSubject('Re', '')).toBe('Re: (no subject)');
    expect(prefixedSubject('Re', '[list] Fwd: Booking')).toBe('Re: [list] Booking');
  });

  it('is cut to the limit with its prefix', () => {
    const long = prefixedSubject('Fwd', 'x'.repeat(998));
    expect(long).toBe(`Fwd: ${'x'.repeat(993)}`);
  });

  it('does not grow when answers are answered', () => {
    fc.assert(
      fc.property(subject, fc.constantFrom('Re', 'Fwd'), (text, prefix) => {
        const first = prefixedSubject('Re', text);
        expect(codePoints(first)).toBeLessThanOrEqual(998);
        expect(prefixedSubject('Re', first)).toBe(first);
        if (codePoints(first) < 990) {
          expect(normalizeSubject(prefixedSubject(prefix, text))).toBe(normalizeSubject(text));
        }
      }),
    );
  });
});

import { describe, expect, it } from 'vitest';
import { codesIn, moreExact, withoutType } from './codes.ts';

describe('the codes in what a server said', () => {
  it.each([
    ['smtp; 550 5.1.1 unknown', '550', '5.1.1'],
    ['550-5.1.1 unknown', '550', '5.1.1'],
    ['250 ok:  Message 64111812 accepted', '250', null],
    ['250 2.0.0 OK', '250', '2.0.0'],
    ['smtp;550 5.7.26 see https://192.0.2.1/ 5.1.1', '550', '5.7.26'],
    ['550', '550', null],
    ['451 Greylisted (#4.7.1)', '451', '4.7.1'],
    ['Giving up on 192.0.2.32. (#5.1.1)', null, '5.1.1'],
    ['5.2.2', null, '5.2.2'],
    ['x-unix; Quota exceeded, could not write\t/var/mail/box', null, null],
    ['Connection timed out to 4.4.1.9 on port 550 of it', null, null],
    ['running mailer 2.10.1 here', null, null],
    ['since 4.12.2026 no answer', null, null],
    ['55 5.1', null, null],
    ['5501 5.1.1234', null, null],
    ['', null, null],
  ])('%j', (text, smtp, enhanced) => {
    expect(codesIn(text)).toEqual({ smtp_code: smtp, enhanced_code: enhanced });
  });

  it('are those of the field made for them, unless that says nothing', () => {
    expect(moreExact('5.1.1', '5.7.1')).toBe('5.1.1');
    expect(moreExact('5.0.0', '5.7.1')).toBe('5.7.1');
    expect(moreExact('5.0.0', null)).toBe('5.0.0');
    expect(moreExact(null, '4.2.2')).toBe('4.2.2');
    expect(moreExact(null, null)).toBeNull();
  });
});

it('the type of a diagnostic is not part of what was said', () => {
  expect(withoutType('smtp; 550 no')).toBe('550 no');
  expect(withoutType('X-Postfix;unknown user: "jo"')).toBe('unknown user: "jo"');
  expect(withoutType('550 no; really')).toBe('550 no; really');
});

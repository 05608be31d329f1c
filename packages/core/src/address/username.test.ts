import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkUsername, foldName, type UsernameRules } from './username.ts';

const TENANT: UsernameRules = { domain_class: 'tenant', chars_max: 24, suffix: '.acme', path: 'username' };
const PLATFORM: UsernameRules = { ...TENANT, domain_class: 'platform', suffix: '' };
const ALIAS: UsernameRules = { domain_class: 'tenant', chars_max: 40, suffix: '', path: 'local_part' };

/** The stored name, or the code of the refusal. */
function outcome(input: string, rules = TENANT): string {
  const result = checkUsername(input, rules);
  return result.ok ? result.value.username : result.code;
}

const ROLES = 'info marketing sales support noc security hostmaster usenet news webmaster www uucp ftp'.split(' ');
const EVERYWHERE = [
  'postmaster abuse noreply no-reply donotreply do-not-reply mailer-daemon mailerdaemon mail-daemon bounce bounces',
  'root admin administrator sysadmin system daemon nobody null devnull listserv majordomo unsubscribe dmarc journal',
]
  .join(' ')
  .split(' ');

describe('names that are accepted', () => {
  test.each(['a', '7', 'bookings', 'a.b-c_d', 'x'.repeat(24), 'on-call', 'request', 'pm', 'owner', 'my-request-desk'])(
    '%s',
    (name) => {
      expect(outcome(name)).toBe(name);
    },
  );

  test('are stored in lower case, dots significant', () => {
    expect(outcome('Front.Desk')).toBe('front.desk');
    expect(outcome('frontdesk')).toBe('frontdesk');
  });

  test.each(ROLES)('the role name %s with a suffix or on an own domain', (name) => {
    expect(outcome(name, TENANT)).toBe(name);
    expect(outcome(name, ALIAS)).toBe(name);
  });
});

describe('step 1 and 5: reserved names', () => {
  test.each(ROLES)('%s alone on the platform domain', (name) => {
    expect(outcome(name, PLATFORM)).toBe('address_reserved');
    expect(outcome(name.toUpperCase(), PLATFORM)).toBe('address_reserved');
  });

  test.each(EVERYWHERE)('%s everywhere', (name) => {
    for (const rules of [PLATFORM, TENANT, ALIAS]) expect(outcome(name, rules)).toBe('address_reserved');
    expect(outcome(name.toUpperCase())).toBe('address_reserved');
  });

  test.each(['p0stmaster', 'rnailer-daemon', 'R00T', 'adrnin', 'nul1', 'postrnaster', 'mai1er-daem0n'])(
    'the look-alike %s',
    (name) => {
      expect(outcome(name)).toBe('address_reserved');
    },
  );

  test.each(['owner-', 'owner-news', 'news-request', 'x-request', 'pm-', 'pm-desk', 'PM-desk'])(
    'the pattern of %s',
    (name) => {
      expect(outcome(name)).toBe('address_reserved');
    },
  );
});

describe('step 3: outside ASCII', () => {
  test.each([
    ['Cyrillic a in abuse', '\u0430buse'],
    ['mixed scripts', 'b\u043e\u043ekings'],
    ['right to left', '\u05d0\u05d1'],
    ['Latin with a mark', 'jos\u00e9'],
    ['the Kelvin sign', '\u212aelvin'],
    ['an emoji', '\u{1f600}'],
  ])('%s', (_name, input) => {
    expect(outcome(input)).toBe('address_unsupported');
  });
});

describe('step 4: form', () => {
  test.each([
    '',
    '.a',
    '-a',
    '_a',
    'a.',
    'a..b',
    'a b',
    'a+b',
    'a@b',
    'a/b',
    ' postmaster',
    'postmaster ',
    'a\nb',
    'a\u0000',
    'x'.repeat(25),
  ])('%j', (name) => {
    expect(outcome(name)).toBe('address_invalid');
  });

  test('an alias may have 40 characters', () => {
    expect(outcome('x'.repeat(40), ALIAS)).toBe('x'.repeat(40));
    expect(outcome('x'.repeat(41), ALIAS)).toBe('address_invalid');
  });
});

describe('step 6: length with the suffix', () => {
  test('40 characters fit, 41 do not', () => {
    const suffix = `.${'s'.repeat(19)}`;
    expect(outcome('x'.repeat(20), { ...TENANT, suffix })).toBe('x'.repeat(20));
    const refused = checkUsername('x'.repeat(21), { ...TENANT, suffix });
    expect(refused).toEqual({
      ok: false,
      code: 'local_part_too_long',
      details: { errors: [{ path: 'username', message: expect.stringContaining('at most 20') as string }] },
    });
  });
});

test('a refusal names the field', () => {
  const refused = checkUsername('root', ALIAS);
  expect(refused.ok ? null : refused.details).toEqual({
    errors: [{ path: 'local_part', message: expect.any(String) as string }],
  });
});

test('names that look alike have one fold', () => {
  expect(foldName('Agent-10')).toBe(foldName('agent-lo'));
  expect(foldName('team')).toBe(foldName('tearn'));
  expect(foldName('a.b')).not.toBe(foldName('ab'));
});

test('whatever is accepted is of the stored form, fits, and is accepted again unchanged', () => {
  const character = fc.constantFrom(...Array.from('abmorn01.-_AZ@ é'));
  fc.assert(
    fc.property(fc.array(character, { maxLength: 30 }), (characters) => {
      const result = checkUsername(characters.join(''), TENANT);
      if (!result.ok) return;
      const { username, fold } = result.value;
      expect(username).toMatch(/^[a-z0-9][a-z0-9._-]{0,23}$/);
      expect(username).not.toMatch(/\.\.|\.$/);
      expect(fold).toBe(foldName(username));
      expect(checkUsername(username, TENANT)).toEqual(result);
    }),
  );
});

import { describe, expect, test } from 'vitest';
import { checkRelaySettings, ehloName, parseRelaySettings, relayFault, tlsOf } from './settings.ts';

const RULES = { api_host: 'api.pmail.example.com', platform_domain: 'agents.example.com', allow_loopback: false };
const LOCAL = { ...RULES, allow_loopback: true };
const GIVEN = { host: 'smtp.relay.example.net', port: 465, username: 'desk', password: 'secret' };

const check = (changes: object, rules = RULES) =>
  checkRelaySettings({ ...GIVEN, ...changes }, 'acme.example.com', rules);

/** Fields that were refused. */
function paths(changes: object, rules = RULES): string[] {
  const result = check(changes, rules);
  if (result.ok) return [];
  const errors = (result.details?.['errors'] ?? []) as { path: string }[];
  return errors.map(({ path }) => path);
}

describe('settings of a relay', () => {
  test('are completed', () => {
    expect(check({ host: 'SMTP.Relay.example.NET.' })).toEqual({
      ok: true,
      value: { ...GIVEN, probe_from: 'postmaster@acme.example.com' },
    });
  });

  test.each([25, 2525, 0, 993, 1465, 65_536, 465.5])('need port 465 or 587, not %d', (port) => {
    expect(check({ port })).toEqual({ ok: false, code: 'smtp_port_not_allowed' });
    expect(check({ port: 587 }).ok).toBe(true);
  });

  test.each([
    'localhost',
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '[::1]',
    'relay',
    'relay.local',
    'relay.internal',
    'api.pmail.example.com',
    'mail.agents.example.com',
    'relay_1.example.net',
    '',
  ])('need a public host, not %j', (host) => {
    expect(paths({ host })).toEqual(['smtp.host']);
  });

  test.each([
    ['', false],
    ['a\0b', false],
    ['a\r\nb', false],
    ['x'.repeat(513), false],
    ['é'.repeat(257), false],
    ['x'.repeat(512), true],
    [' blank ', true],
  ])('take credentials as they are: %j %s', (text, fine) => {
    expect(paths({ username: text })).toEqual(fine ? [] : ['smtp.username']);
    expect(paths({ password: text })).toEqual(fine ? [] : ['smtp.password']);
  });

  test.each([
    ['probe@acme.example.com', true],
    ['Probe@ACME.example.com', true],
    ['probe@other.example.com', false],
    ['probe@sub.acme.example.com', false],
    ['probe', false],
  ])('probe from an address of the domain: %s %s', (probe_from, fine) => {
    expect(paths({ probe_from })).toEqual(fine ? [] : ['smtp.probe_from']);
  });

  test('name every field that is wrong', () => {
    expect(paths({ host: 'x', username: '', password: '', probe_from: '' })).toEqual([
      'smtp.host',
      'smtp.username',
      'smtp.password',
      'smtp.probe_from',
    ]);
  });

  test('come back from their text, and nothing else does', () => {
    const settings = { ...GIVEN, probe_from: 'postmaster@acme.example.com' };
    expect(parseRelaySettings(JSON.stringify(settings))).toEqual(settings);
    expect(parseRelaySettings(JSON.stringify({ ...settings, tls: 'implicit', more: 1 }))).toEqual({
      ...settings,
      tls: 'implicit',
    });
    for (const text of ['', 'null', '[]', '{}', '"x"', JSON.stringify({ ...settings, port: '465' })]) {
      expect(parseRelaySettings(text)).toBeUndefined();
    }
    const { password: _password, ...without } = settings;
    expect(parseRelaySettings(JSON.stringify(without))).toBeUndefined();
  });
});

describe('a connection', () => {
  test('begins as its port says, and on other ports as the settings say', () => {
    expect(tlsOf({ port: 465 })).toBe('implicit');
    expect(tlsOf({ port: 587 })).toBe('starttls');
    expect(tlsOf({ port: 465, tls: 'starttls' })).toBe('implicit');
    expect(tlsOf({ port: 4465, tls: 'implicit' })).toBe('implicit');
    expect(tlsOf({ port: 4587 })).toBe('starttls');
  });

  test('may go to this machine only where that is allowed, and then to any port', () => {
    for (const host of ['localhost', '127.0.0.1', '::1']) {
      expect(relayFault({ host, port: 4465 }, LOCAL)).toBeNull();
      expect(relayFault({ host, port: 465 }, RULES)).not.toBeNull();
    }
    expect(relayFault({ host: '127.0.0.2', port: 465 }, LOCAL)).not.toBeNull();
    expect(relayFault({ host: 'smtp.relay.example.net', port: 4465 }, LOCAL)).not.toBeNull();
    expect(check({ host: 'localhost', port: 4465 }, LOCAL).ok).toBe(true);
  });

  test.each([
    ['api.example.com', 'api.example.com'],
    ['API.example.com:8787', 'api.example.com'],
    ['127.0.0.1:8787', '[127.0.0.1]'],
    ['localhost', 'localhost'],
    ['[::1]:8787', '[127.0.0.1]'],
    ['a b\r\nMAIL', '[127.0.0.1]'],
    ['', '[127.0.0.1]'],
  ])('introduces us as a name or an address: %j as %s', (host, name) => {
    expect(ehloName(host)).toBe(name);
  });
});

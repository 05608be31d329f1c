import { env } from 'cloudflare:workers';
import { describe, expect, test } from 'vitest';
import { type Env, readConfig } from '../src/env.ts';

/** Settings: what stands where nothing is set, and what is told to be wrong, by name and never by value. */

function settings(changes: Partial<Env>) {
  const result = readConfig({ ...env, ...changes });
  return result.ok ? result.config : result.invalid;
}

describe('without a setting', () => {
  test('relays are on, Message-IDs are learned by the journal, and there is no SES', () => {
    expect(settings({ PM_SMTP_RELAY: '', PM_MESSAGE_ID_STRATEGY: '', PM_SES_REGION: '' })).toMatchObject({
      deployment: { smtp_enabled: true, ses_configured: false },
      message_ids: { strategy: 'journal', domain: null },
      ses: null,
      ses_topic: null,
    });
  });
});

const SES = {
  PM_SES_REGION: 'eu-west-1',
  PM_SES_ACCESS_KEY_ID: 'AKIAIOSFODNN7EXAMPLE',
  PM_SES_SECRET_ACCESS_KEY: 'secret',
};

test('relays can be turned off', () => {
  expect(settings({ PM_SMTP_RELAY: 'off' })).toMatchObject({ deployment: { smtp_enabled: false } });
});

test.each(Object.keys(SES))('SES needs %s', (name) => {
  expect(settings(SES)).toMatchObject({ deployment: { ses_configured: true } });
  expect(settings({ ...SES, [name]: '' })).toMatchObject({ deployment: { ses_configured: false }, ses: null });
});

test.each<Partial<Env>>([
  { PM_SMTP_RELAY: 'true' },
  { PM_MESSAGE_ID_STRATEGY: 'guess' },
  { PM_SES_REGION: 'eu-west-1.evil.example' },
  { PM_ENV: 'production', PM_RELAY_LOOPBACK: 'on' },
])('%j is named as wrong', (changes) => {
  expect(settings(changes)).toContain(Object.keys(changes).at(-1));
});

const faults = (change: Partial<Record<keyof Env, string>>): string[] => {
  const result = readConfig({ ...env, PM_RELAY_LOOPBACK: 'off', ...change } as Env);
  return result.ok ? [] : result.invalid;
};

test('those of the tests are right', () => {
  expect(faults({})).toEqual([]);
});

describe('PM_API_HOST and PM_PLATFORM_DOMAIN', () => {
  test.each([
    '',
    'https://api.example.com',
    'api.example.com/',
    'api.example.com:443',
    'localhost',
    '192.0.2.1',
    'a b.com',
  ])('%j is none', (text) => {
    expect(faults({ PM_ENV: 'production', PM_API_HOST: text })).toContain('PM_API_HOST');
    expect(faults({ PM_ENV: 'production', PM_PLATFORM_DOMAIN: text })).toContain('PM_PLATFORM_DOMAIN');
  });

  test('are compared in lower case', () => {
    expect(settings({ PM_API_HOST: 'API.Example.com', PM_PLATFORM_DOMAIN: 'Agents.Example.com' })).toMatchObject({
      api_host: 'api.example.com',
      platform_domain: 'agents.example.com',
    });
  });

  test.each(['localhost:8787', '127.0.0.1:8787', 'localhost', 'localhost:80', '[::1]:8787', 'api.example'])(
    'a local run may be at %s',
    (text) => {
      expect(faults({ PM_ENV: 'local', PM_API_HOST: text })).toEqual([]);
    },
  );

  test.each(['http://localhost:8787', 'localhost:8787/', 'user@localhost', ''])('but not at %j', (text) => {
    expect(faults({ PM_ENV: 'local', PM_API_HOST: text })).toEqual(['PM_API_HOST']);
  });
});

const SECOND = 'https://1.1.1.1/dns-query';

describe('PM_DOH_RESOLVERS', () => {
  test.each([
    [`https://dns.example.com/dns-query, ${SECOND}`, []],
    ['', []],
    [SECOND, ['PM_DOH_RESOLVERS']],
    [`${SECOND},${SECOND},${SECOND}`, ['PM_DOH_RESOLVERS']],
    [`dns.example.com,${SECOND}`, ['PM_DOH_RESOLVERS']],
    [`${SECOND},`, ['PM_DOH_RESOLVERS']],
    [`http://dns.example.com/dns-query,${SECOND}`, ['PM_DOH_RESOLVERS']],
    [`${SECOND},http://127.0.0.1:8053/dns-query`, ['PM_DOH_RESOLVERS']],
  ])('%j in production: %j', (PM_DOH_RESOLVERS, expected) => {
    expect(faults({ PM_ENV: 'production', PM_WAITS: '', PM_DOH_RESOLVERS })).toEqual(expected);
  });

  test('a local run may ask this machine by http, and no other', () => {
    const own = 'http://127.0.0.1:8053/dns-query';
    expect(faults({ PM_ENV: 'local', PM_DOH_RESOLVERS: `${own},${own}` })).toEqual([]);
    expect(faults({ PM_ENV: 'local', PM_DOH_RESOLVERS: `${own},http://10.0.0.1/dns-query` })).toEqual([
      'PM_DOH_RESOLVERS',
    ]);
  });
});

test('objects stay in the EU unless a deployment says otherwise, in so many words', () => {
  expect(settings({ PM_JURISDICTION: '' })).toMatchObject({ jurisdiction: 'eu' });
  expect(settings({ PM_JURISDICTION: 'default' })).toMatchObject({ jurisdiction: null });
  for (const PM_JURISDICTION of ['EU', 'none', 'fedramp'])
    expect(faults({ PM_JURISDICTION })).toEqual(['PM_JURISDICTION']);
});

test('a deployment is a production one unless it says otherwise', () => {
  expect(settings({ PM_ENV: '', PM_WAITS: '', PM_RELAY_LOOPBACK: '' })).toMatchObject({ env: 'production' });
});

test.each(['null', '[]', '"x"', '{', '{"max_recipients":"x"}', '{"link_ttl_hours":1000}', '{"max_recipient":5}'])(
  'PM_DEFAULT_POLICY %s is none',
  (PM_DEFAULT_POLICY) => {
    expect(faults({ PM_DEFAULT_POLICY })).toEqual(['PM_DEFAULT_POLICY']);
  },
);

test('PM_DEFAULT_POLICY stands below the policy of every tenant', () => {
  const patch = { max_recipients: 5, auto_reply: { allowed: false } };
  expect(settings({ PM_DEFAULT_POLICY: JSON.stringify(patch) })).toMatchObject({
    deployment: { default_policy: patch },
  });
});

test('PM_WEBHOOK_LOOPBACK is for local runs', () => {
  expect(faults({ PM_ENV: 'staging', PM_WAITS: '', PM_WEBHOOK_LOOPBACK: 'on' })).toEqual(['PM_WEBHOOK_LOOPBACK']);
  expect(faults({ PM_ENV: 'local', PM_WEBHOOK_LOOPBACK: 'on' })).toEqual([]);
});

test('several faults are all named', () => {
  expect(faults({ PM_ENV: 'prod', PM_WAITS: '', PM_API_HOST: '', PM_MASTER_KEY: 'short' })).toEqual([
    'PM_ENV',
    'PM_API_HOST',
    'PM_MASTER_KEY',
  ]);
});

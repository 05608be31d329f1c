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

describe('PM_RESOLVERS', () => {
  test.each([
    ['https://dns.example.com/dns-query', []],
    ['https://dns.example.com/dns-query, https://1.1.1.1/dns-query', []],
    ['', []],
    ['dns.example.com', ['PM_RESOLVERS']],
    ['https://dns.example.com/dns-query,', ['PM_RESOLVERS']],
    ['http://dns.example.com/dns-query', ['PM_RESOLVERS']],
    ['http://127.0.0.1:8053/dns-query', ['PM_RESOLVERS']],
  ])('%j in production: %j', (PM_RESOLVERS, expected) => {
    expect(faults({ PM_ENV: 'production', PM_WAITS: '', PM_RESOLVERS })).toEqual(expected);
  });

  test('a local run may ask this machine by http, and no other', () => {
    expect(faults({ PM_ENV: 'local', PM_RESOLVERS: 'http://127.0.0.1:8053/dns-query' })).toEqual([]);
    expect(faults({ PM_ENV: 'local', PM_RESOLVERS: 'http://10.0.0.1/dns-query' })).toEqual(['PM_RESOLVERS']);
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

import { env } from 'cloudflare:workers';
import { describe, expect, test } from 'vitest';
import { type Env, readConfig } from '../src/env.ts';

/** Settings that are wrong are named, and never shown. */

const faults = (change: Partial<Record<keyof Env, string>>): string[] => {
  const result = readConfig({ ...env, ...change } as Env);
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

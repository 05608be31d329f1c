import { env } from 'cloudflare:workers';
import { describe, expect, test } from 'vitest';
import { type Env, readConfig } from '../src/env.ts';

/** Settings of the transports: what stands where nothing is set, and what is told to be wrong. */

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

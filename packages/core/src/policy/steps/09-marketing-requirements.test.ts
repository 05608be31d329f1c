import { describe, expect, it } from 'vitest';
import type { SendBody } from '../../message/request.ts';
import { replyContext, runStep } from '../context.fixture.ts';
import { newDraft } from '../pipeline.ts';
import { marketingRequirements } from './09-marketing-requirements.ts';

const COMPLETE: SendBody = {
  kind: 'marketing',
  unsubscribe: { url: 'https://example.com/u?t=1' },
  consent: { basis: 'opt-in form', recorded_at: '2026-01-02T03:04:05Z' },
};

describe('step 9: marketing mail can be unsubscribed from and has consent', () => {
  it.each(['transactional', 'auto_reply'] as const)('asks nothing of kind %s', (kind) => {
    expect(runStep(marketingRequirements, { body: { kind } }).refusal).toBeNull();
  });

  it('takes a message without a kind for transactional', () => {
    expect(runStep(marketingRequirements).refusal).toBeNull();
  });

  it('lets marketing pass with an https URL and consent', () => {
    expect(runStep(marketingRequirements, { body: COMPLETE }).refusal).toBeNull();
    const withMailto = { ...COMPLETE, unsubscribe: { url: 'https://example.com/u', mailto: 'u@example.com' } };
    expect(runStep(marketingRequirements, { body: withMailto }).refusal).toBeNull();
  });

  it.each([
    'http://example.com/u',
    'mailto:u@example.com',
    'example.com/u',
    'https://',
    'https://user:secret@example.com/u',
    'https://example.com/u\r\nBcc: x@example.org',
    'https://example.com/a b',
    'https://example.com/>,<mailto:x@example.org',
    'javascript:alert(1)',
    '',
  ])('refuses the URL %j', (url) => {
    expect(runStep(marketingRequirements, { body: { ...COMPLETE, unsubscribe: { url } } }).refusal).toMatchObject({
      code: 'marketing_requirements_missing',
      details: { errors: [{ path: 'unsubscribe.url' }] },
    });
  });

  it('refuses missing consent', () => {
    expect(runStep(marketingRequirements, { body: { ...COMPLETE, consent: undefined } }).refusal).toMatchObject({
      code: 'marketing_requirements_missing',
      details: { errors: [{ path: 'consent' }] },
    });
  });

  it('names everything that is missing at once', () => {
    expect(runStep(marketingRequirements, { body: { kind: 'marketing' } }).refusal).toMatchObject({
      details: { errors: [{ path: 'unsubscribe.url' }, { path: 'consent' }] },
    });
  });

  it.each(['reply', 'reply_all'] as const)('refuses marketing as a %s, even a complete one', (operation) => {
    const context = replyContext({ operation, body: COMPLETE });
    expect(marketingRequirements.check(context, newDraft(context))).toMatchObject({
      code: 'marketing_requirements_missing',
      details: { errors: [{ path: 'kind' }] },
    });
  });
});

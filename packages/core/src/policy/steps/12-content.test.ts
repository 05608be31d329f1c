import { describe, expect, it } from 'vitest';
import { runStep } from '../context.fixture.ts';
import { content } from './12-content.ts';

describe('step 12: content', () => {
  it('lets a plain message pass', () => {
    expect(runStep(content).refusal).toBeNull();
  });

  it('refuses with every fault of the request at once', () => {
    const { refusal } = runStep(content, {
      body: { text: undefined, subject: 'a\nb', labels: ['Not A Label'], metadata: { k: 'v'.repeat(513) } },
    });
    expect(refusal).toMatchObject({
      code: 'invalid_request',
      details: { errors: [{ path: 'text' }, { path: 'subject' }, { path: 'labels[0]' }, { path: 'metadata.k' }] },
    });
  });

  it('lets a forward pass without words of its own', () => {
    expect(runStep(content, { operation: 'forward', body: { text: undefined } }).refusal).toBeNull();
  });
});

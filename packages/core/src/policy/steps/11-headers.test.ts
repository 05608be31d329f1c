import { describe, expect, it } from 'vitest';
import { replyContext, runStep, target, thread } from '../context.fixture.ts';
import { newDraft } from '../pipeline.ts';
import { headers } from './11-headers.ts';

describe('step 11: headers and hops', () => {
  it('writes the headers into the draft, named ones in their canonical spelling', () => {
    const { refusal, draft } = runStep(headers, { body: { headers: { 'X-Ticket': '4471', IMPORTANCE: 'high' } } });
    expect(refusal).toBeNull();
    expect(draft.headers).toEqual([
      { name: 'X-Ticket', value: '4471' },
      { name: 'Importance', value: 'high' },
    ]);
  });

  it('refuses a name that callers may not set', () => {
    expect(runStep(headers, { body: { headers: { Bcc: 'x@example.net' } } }).refusal).toMatchObject({
      code: 'header_not_allowed',
      details: { errors: [{ path: 'headers.Bcc' }] },
    });
  });

  it('refuses a value that cannot be sent', () => {
    expect(runStep(headers, { body: { headers: { 'X-Ticket': 'a\r\nBcc: x@example.net' } } }).refusal).toMatchObject({
      code: 'invalid_request',
      details: { errors: [{ path: 'headers.X-Ticket' }] },
    });
  });

  it('gives a new send hop 1', () => {
    expect(runStep(headers).draft.hop).toBe(1);
  });

  it('counts on from the message that is answered or followed', () => {
    const context = replyContext({ target: target({ hop: 3 }) });
    const draft = newDraft(context);
    expect(headers.check(context, draft)).toBeNull();
    expect(draft.hop).toBe(4);
    expect(runStep(headers, { thread: thread({ hop: 6 }) }).draft.hop).toBe(7);
  });

  it('does not hold against an answer to a person what machines wrote later in the thread', () => {
    const context = replyContext({ target: target({ hop: 0 }), thread: thread({ hop: 9 }) });
    const draft = newDraft(context);
    expect(headers.check(context, draft)).toBeNull();
    expect(draft.hop).toBe(1);
  });

  it('lets hop 9 pass and ends the loop at 10', () => {
    expect(runStep(headers, { thread: thread({ hop: 8 }) }).refusal).toBeNull();
    expect(runStep(headers, { thread: thread({ hop: 9 }) }).refusal).toEqual({
      ok: false,
      code: 'loop_detected',
      details: { hop: 10 },
    });
    expect(runStep(headers, { thread: thread({ hop: 19 }) }).refusal).toMatchObject({ details: { hop: 20 } });
  });
});

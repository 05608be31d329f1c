import { describe, expect, it } from 'vitest';
import { INBOUND_KINDS, OUTBOUND_KINDS } from '../../message/request.ts';
import { type Overrides, replyContext, runStep, target, thread } from '../context.fixture.ts';
import { newDraft } from '../pipeline.ts';
import { autoReply } from './10-auto-reply.ts';

const REFUSED = { ok: false, code: 'auto_reply_not_allowed' };

function check(overrides: Overrides = {}) {
  const context = replyContext({ ...overrides, body: { kind: 'auto_reply' } });
  return autoReply.check(context, newDraft(context));
}

describe('step 10: automatic replies', () => {
  it('asks nothing of messages that are not automatic', () => {
    expect(runStep(autoReply, { policy: { auto_reply: { allowed: false, max_automatic_exchanges: 0 } } }).refusal).toBe(
      null,
    );
  });

  it.each(['reply', 'reply_all'] as const)('may be a %s', (operation) => {
    expect(check({ operation })).toBeNull();
  });

  it.each(['send', 'forward'] as const)('may not be a %s', (operation) => {
    expect(check({ operation })).toEqual(REFUSED);
  });

  it.each(INBOUND_KINDS)('answers a person or an invitation, nothing else: %s', (kind) => {
    const answer = check({ target: target({ kind }) });
    expect(answer).toEqual(kind === 'normal' || kind === 'calendar' ? null : REFUSED);
  });

  it.each(OUTBOUND_KINDS)('does not answer our own mail: %s', (kind) => {
    expect(check({ target: target({ direction: 'outbound', status: 'delivered', kind }) })).toEqual(REFUSED);
  });

  it('needs the permission of the tenant and of the identity', () => {
    expect(check({ policy: { auto_reply: { allowed: false, max_automatic_exchanges: 2 } } })).toEqual(REFUSED);
    expect(check({ identity: { send_policy: { auto_reply: 'denied' } } })).toEqual(REFUSED);
    expect(check({ identity: { send_policy: { auto_reply: 'allowed' } } })).toBeNull();
  });

  it('refuses the third automatic reply in a row', () => {
    expect(check({ thread: thread({ automatic_exchanges: 1 }) })).toBeNull();
    expect(check({ thread: thread({ automatic_exchanges: 2 }) })).toEqual(REFUSED);
    expect(check({ thread: thread({ automatic_exchanges: 3 }) })).toEqual(REFUSED);
  });

  it('takes the cap from the policy; 0 allows none', () => {
    const cap = (max: number): Overrides => ({
      policy: { auto_reply: { allowed: true, max_automatic_exchanges: max } },
    });
    expect(check({ ...cap(5), thread: thread({ automatic_exchanges: 4 }) })).toBeNull();
    expect(check({ ...cap(5), thread: thread({ automatic_exchanges: 5 }) })).toEqual(REFUSED);
    expect(check(cap(0))).toEqual(REFUSED);
  });
});

import { describe, expect, it } from 'vitest';
import { OUTBOUND_STATUSES } from '../../delivery/status.ts';
import { runStep, target, thread } from '../context.fixture.ts';
import { targetVisible } from './05-target-visible.ts';

const MESSAGE_NOT_FOUND = { ok: false, code: 'message_not_found' };

describe('step 5: what the send is about exists and may be seen', () => {
  it('asks nothing of a send that starts a thread', () => {
    expect(runStep(targetVisible).refusal).toBeNull();
  });

  it('lets a send pass that names a thread of this mailbox', () => {
    const known = thread();
    expect(runStep(targetVisible, { body: { thread_id: known.id }, thread: known }).refusal).toBeNull();
  });

  it('refuses a send to a thread that is not there', () => {
    expect(runStep(targetVisible, { body: { thread_id: thread().id }, thread: null }).refusal).toEqual({
      ok: false,
      code: 'thread_not_found',
    });
  });

  describe.each(['reply', 'reply_all', 'forward'] as const)('%s', (operation) => {
    it('refuses when there is no such message', () => {
      expect(runStep(targetVisible, { operation }).refusal).toEqual(MESSAGE_NOT_FOUND);
    });

    it('lets received mail and mail of our own pass, in any status', () => {
      expect(runStep(targetVisible, { operation, target: target() }).refusal).toBeNull();
      for (const status of OUTBOUND_STATUSES) {
        const own = target({ direction: 'outbound', kind: 'transactional', status });
        expect(runStep(targetVisible, { operation, target: own }).refusal).toBeNull();
      }
    });

    it.each(['hidden', 'throttled'] as const)('never finds %s mail, not even for a reviewer', (status) => {
      for (const can_review_quarantine of [false, true]) {
        const context = { operation, can_review_quarantine, target: target({ status }) };
        expect(runStep(targetVisible, context).refusal).toEqual(MESSAGE_NOT_FOUND);
      }
    });

    it('finds quarantined mail only for a key that may review it', () => {
      const quarantined = target({ status: 'quarantined' });
      expect(runStep(targetVisible, { operation, target: quarantined }).refusal).toEqual(MESSAGE_NOT_FOUND);
      const reviewer = { operation, target: quarantined, can_review_quarantine: true };
      expect(runStep(targetVisible, reviewer).refusal).toBeNull();
    });
  });
});

import { LIMITS } from '../../limits.ts';
import { refuse } from '../../result.ts';
import type { LateStep } from '../step.ts';

/** The message as composed, so after large attachments were turned into links where the policy says so. */
export const size: LateStep = {
  number: 17,
  name: 'size',
  phase: 'size',
  check: (_context, _draft, late) =>
    late.composed_bytes > LIMITS.composed_bytes_max
      ? refuse('message_too_large', { size: late.composed_bytes, limit: LIMITS.composed_bytes_max })
      : null,
};

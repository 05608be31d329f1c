import { LIMITS } from '../../limits.ts';
import { refuse } from '../../result.ts';
import { checkCustomHeaders } from '../headers.ts';
import type { RequestStep } from '../step.ts';

/** Custom headers, and the hop count that ends a loop between agents. */
export const headers: RequestStep = {
  number: 11,
  name: 'headers',
  phase: 'request',
  check: (context, draft) => {
    const checked = checkCustomHeaders(context.body.headers ?? {});
    if (!checked.ok) return checked;
    draft.headers = checked.value;
    // Of the message that is answered or forwarded; of the thread's latest where a send only goes on with it.
    draft.hop = 1 + ((context.target ?? context.thread)?.hop ?? 0);
    return draft.hop >= LIMITS.hop_count_max ? refuse('loop_detected', { hop: draft.hop }) : null;
  },
};

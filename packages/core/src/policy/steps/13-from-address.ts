import { invalidRequest } from '../../result.ts';
import { selectFrom } from '../from.ts';
import type { RequestStep } from '../step.ts';

export const fromAddress: RequestStep = {
  number: 13,
  name: 'from address',
  phase: 'request',
  check: (context, draft) => {
    const selected = selectFrom(context);
    if (typeof selected === 'string') return invalidRequest({ path: 'from_address', message: selected });
    draft.from = selected;
    return null;
  },
};

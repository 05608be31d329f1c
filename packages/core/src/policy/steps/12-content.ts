import { invalidRequest } from '../../result.ts';
import { checkContent } from '../content.ts';
import type { RequestStep } from '../step.ts';

export const content: RequestStep = {
  number: 12,
  name: 'content',
  phase: 'request',
  check: ({ body, operation }) => {
    const errors = checkContent(body, operation);
    return errors.length === 0 ? null : invalidRequest(...errors);
  },
};

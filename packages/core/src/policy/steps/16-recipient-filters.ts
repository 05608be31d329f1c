import { filterReason } from '../filters.ts';
import type { RequestStep } from '../step.ts';

/** Never refuses: a recipient that may not be written to becomes a suppressed delivery, the others are sent. */
export const recipientFilters: RequestStep = {
  number: 16,
  name: 'recipient filters',
  phase: 'request',
  check: (context, draft) => {
    draft.recipients = draft.recipients.map((recipient) => ({
      ...recipient,
      filtered: filterReason(context, recipient.address),
    }));
    return null;
  },
};

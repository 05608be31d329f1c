import { planRecipients } from '../recipients.ts';
import type { RequestStep } from '../step.ts';

export const recipientsValid: RequestStep = {
  number: 6,
  name: 'recipients valid',
  phase: 'request',
  check: (context, draft) => {
    const planned = planRecipients(context);
    if (!planned.ok) return planned;
    draft.recipients = planned.value;
    return null;
  },
};

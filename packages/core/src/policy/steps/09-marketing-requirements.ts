import { type FieldError, refuse } from '../../result.ts';
import type { RequestStep } from '../step.ts';
import { isHttpsUrl } from '../url.ts';

/** Marketing mail needs a one-click HTTPS unsubscribe (RFC 8058) and recorded consent; replies cannot be marketing. */
export const marketingRequirements: RequestStep = {
  number: 9,
  name: 'marketing requirements',
  phase: 'request',
  check: ({ operation, body }, draft) => {
    if (draft.kind !== 'marketing') return null;
    const errors: FieldError[] = [];
    if (operation === 'reply' || operation === 'reply_all') {
      errors.push({ path: 'kind', message: 'a reply is transactional or auto_reply' });
    } else {
      if (body.unsubscribe === undefined || !isHttpsUrl(body.unsubscribe.url)) {
        errors.push({ path: 'unsubscribe.url', message: 'must be an https URL' });
      }
      if (body.consent === undefined) errors.push({ path: 'consent', message: 'is required for marketing mail' });
    }
    return errors.length === 0 ? null : refuse('marketing_requirements_missing', { errors });
  },
};

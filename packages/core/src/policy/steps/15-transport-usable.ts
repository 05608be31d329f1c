import { refuse } from '../../result.ts';
import type { RequestStep } from '../step.ts';

/** Cloudflare Email Service is for transactional mail only, so marketing needs a domain that sends by SES or a relay. */
export const transportUsable: RequestStep = {
  number: 15,
  name: 'transport usable',
  phase: 'request',
  check: ({ directory: { deployment } }, draft) => {
    const transport = draft.from?.domain.transport;
    if (transport === 'ses' && !deployment.ses_configured) {
      return refuse('transport_unavailable', { reason: 'ses_not_configured' });
    }
    if (transport === 'smtp' && !deployment.smtp_enabled) {
      return refuse('transport_unavailable', { reason: 'smtp_relay_disabled' });
    }
    return draft.kind === 'marketing' && transport === 'cloudflare'
      ? refuse('transport_unavailable', { reason: 'marketing_needs_ses' })
      : null;
  },
};

import { refuse } from '../../result.ts';
import type { LateStep } from '../step.ts';

/** The allowance first, then the daily caps: a request that fails both hears the answer that needs a person. */
export const quota: LateStep = {
  number: 18,
  name: 'quota',
  phase: 'quota',
  check: (_context, _draft, { reservation }) => {
    switch (reservation.kind) {
      case 'ok':
        return null;
      case 'denied': {
        const { feature, granted, used, resets_at } = reservation;
        return refuse('billing_limit', { feature, granted, used, resets_at, upgrade_url: null });
      }
      case 'cap_reached':
        return refuse('daily_cap_reached', { cap: reservation.scope, resets_at: reservation.resets_at });
    }
  },
};

import { withoutDetail } from '../../address/address.ts';
import { refuse } from '../../result.ts';
import { isSimulatorAddress } from '../../transport/simulator-scripts.ts';
import type { RequestStep } from '../step.ts';

/** A test tenant's mail stays inside: the simulator, or an address of this deployment (`+tag` ignored). */
export const testModeRecipients: RequestStep = {
  number: 8,
  name: 'test mode recipients',
  phase: 'request',
  check: ({ directory }, draft) => {
    if (directory.tenant.mode !== 'test') return null;
    const local = new Set(directory.local_addresses);
    const outside = draft.recipients.filter(
      ({ address }) => !isSimulatorAddress(address) && !local.has(withoutDetail(address)),
    );
    return outside.length === 0
      ? null
      : refuse('test_mode_recipient', { recipients: outside.map(({ address }) => address) });
  },
};

import { type Address, asciiLower, domainOf, localPartOf } from '../address/address.ts';
import { ulidOf } from '../ids.ts';
import type { ScheduledEvent } from './types.ts';

export const SIMULATOR_DOMAIN = 'simulator.invalid';

export function isSimulatorAddress(address: Address): boolean {
  return domainOf(address) === SIMULATOR_DOMAIN;
}

type Step = Omit<ScheduledEvent, 'recipient' | 'n'>;

function step(afterMs: number, kind: Step['kind'], code: string, enhanced: string, text: string, hard = false): Step {
  return {
    after_ms: afterMs,
    kind,
    hard,
    smtp_code: code,
    enhanced_code: enhanced,
    smtp_response: `${code} ${enhanced} ${text}`,
  };
}

const DELIVERED = step(1_000, 'delivered', '250', '2.0.0', 'OK');
const DEFERRED = step(1_000, 'deferred', '451', '4.2.0', 'Try again later');

/** What the transport answers for a local part at simulator.invalid, and what it reports afterwards. */
export type SimulatorScript = { answer: 'accepted'; events: Step[] } | { answer: 'rejected' } | { answer: 'unknown' };

const SCRIPTS: Record<string, SimulatorScript> = {
  delivered: { answer: 'accepted', events: [DELIVERED] },
  bounce: { answer: 'accepted', events: [step(1_000, 'bounced', '550', '5.1.1', 'User unknown', true)] },
  softbounce: {
    answer: 'accepted',
    events: [DEFERRED, step(3_000, 'bounced', '452', '4.2.2', 'Mailbox full')],
  },
  complaint: {
    answer: 'accepted',
    events: [
      DELIVERED,
      { ...step(3_000, 'complained', '', '', ''), smtp_code: null, enhanced_code: null, smtp_response: null },
    ],
  },
  deferred: { answer: 'accepted', events: [DEFERRED] },
  reject: { answer: 'rejected' },
  timeout: { answer: 'unknown' },
};

/** The script a recipient at simulator.invalid picks; `+tag` is ignored and an unknown name is delivered. */
export function simulatorScript(address: Address): SimulatorScript {
  const local = asciiLower(localPartOf(address)).replace(/\+.*$/, '');
  return (Object.hasOwn(SCRIPTS, local) ? SCRIPTS[local] : undefined) ?? { answer: 'accepted', events: [DELIVERED] };
}

/** The one id under which the test providers know a message. */
export function testProviderId(messageId: string): string {
  return `test-${ulidOf(messageId)}`;
}

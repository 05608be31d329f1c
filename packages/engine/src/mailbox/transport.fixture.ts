import { judgeBounce, judgeOther } from '@pmail/core/delivery/bounce-class.ts';
import type { DeliveryEvent, DeliveryKind } from '@pmail/core/delivery/events.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { address, type Overrides, platformAddress, sendContext } from '@pmail/core/policy/context.fixture.ts';
import type { DomainFacts } from '@pmail/core/policy/types.ts';
import type { TransportFacts } from '@pmail/core/transport/choose.ts';
import type { RecipientRefusal, TransportResult } from '@pmail/core/transport/types.ts';
import type { BeginAnswer, ClaimedSend } from './begin-transport.ts';
import type { MailboxRig } from './mailbox.fixture.ts';
import type { OutcomeAnswer } from './record-outcome.ts';

/** The consumer's part of a send, played by a test: claims, results of transports, reports of providers. */

type Accepted = Extract<TransportResult, { kind: 'accepted' }>;

export function accepted(changes: Partial<Omit<Accepted, 'kind'>> = {}): Accepted {
  return {
    kind: 'accepted',
    provider_message_id: 'prov-1',
    rfc_message_id: null,
    refused: [],
    deferred: [],
    scheduled: [],
    copies: [],
    ...changes,
  };
}

export const REJECTED: TransportResult = {
  kind: 'rejected',
  reason: 'provider_validation',
  code: 'E_VALIDATION_ERROR',
  detail: 'invalid content',
  refused: [],
};

export const TIMEOUT: TransportResult = { kind: 'unknown', reason: 'transport_timeout', detail: 'no answer' };

export function retryLater(
  retryClass: Extract<TransportResult, { kind: 'retry_later' }>['class'],
  refused: RecipientRefusal[] = [],
): TransportResult {
  return { kind: 'retry_later', class: retryClass, code: '451', detail: 'later', refused };
}

export function refusal(recipient: string): RecipientRefusal {
  return { address: recipient, smtp_code: '550', enhanced_code: '5.1.1', detail: '550 5.1.1 no such user' };
}

/** The directory's view when a message is about to leave: a live tenant, a healthy domain. */
export function facts(domain: Partial<DomainFacts> = {}, overrides: Overrides = {}): TransportFacts {
  const { tenant } = sendContext(overrides).directory;
  return {
    tenant_mode: tenant.mode,
    addresses: [address({ domain }), platformAddress({ domain })],
    domain_fallback: false,
    ses_sending_paused: false,
  };
}

/** One consumer run, which may claim with its token and report under it. */
export class Run {
  readonly rig: MailboxRig;
  readonly token: string;
  readonly id: MessageId;

  constructor(rig: MailboxRig, id: MessageId, token = `run ${++runs}`) {
    this.rig = rig;
    this.id = id;
    this.token = token;
  }

  begin(transportFacts: TransportFacts = facts()): BeginAnswer {
    return this.rig.engine.beginTransport({
      message_id: this.id,
      claim_token: this.token,
      facts: transportFacts,
      last_sequence: this.rig.lastSequence,
    });
  }

  claim(transportFacts: TransportFacts = facts()): ClaimedSend {
    const answer = this.begin(transportFacts);
    if (answer.kind !== 'claimed') throw new Error(`not claimed: ${answer.kind}`);
    return answer.send;
  }

  record(result: TransportResult): Promise<OutcomeAnswer> {
    return this.rig.engine.recordOutcome({ message_id: this.id, claim_token: this.token, result });
  }
}

let runs = 0;

/** Claims and reports in one go. */
export async function attempt(rig: MailboxRig, id: MessageId, result: TransportResult): Promise<OutcomeAnswer> {
  const run = new Run(rig, id);
  run.claim();
  return run.record(result);
}

let reports = 0;

/** A provider's report about a message sent by the rig, 250 or 5.1.1 as its kind suggests. */
export function report(
  rig: MailboxRig,
  kind: DeliveryKind | 'soft_bounced',
  changes: Partial<DeliveryEvent> = {},
): DeliveryEvent {
  const bounced = kind === 'bounced' || kind === 'soft_bounced';
  const [code, enhanced] =
    kind === 'bounced' ? ['550', '5.1.1'] : kind === 'delivered' ? ['250', '2.0.0'] : ['451', '4.2.0'];
  const judged = bounced
    ? judgeBounce(kind === 'bounced' ? 'hard' : 'soft', enhanced, code)
    : { hard: false, outcome: null, suppress: null, ...judgeOther(kind) };
  return {
    source: 'cloudflare',
    event_id: `report ${++reports}`,
    provider_message_id: 'prov-1',
    sender: 'desk@acme.example.com',
    recipient: 'jo@example.net',
    subject: 'Your booking',
    kind: bounced ? 'bounced' : kind,
    ...judged,
    smtp_code: code,
    enhanced_code: enhanced,
    smtp_response: `${code} ${enhanced} text`,
    occurred_at: rig.clock.now,
    ...changes,
  };
}

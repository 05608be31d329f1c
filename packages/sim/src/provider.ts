import { judgeBounce, judgeOther } from '@pmail/core/delivery/bounce-class.ts';
import type { DeliveryEvent, DeliveryKind } from '@pmail/core/delivery/events.ts';
import { sha256Hex } from '@pmail/core/hash.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { MailTransport, OutgoingMessage, Provider, TransportResult } from '@pmail/core/transport/types.ts';
import type { Process } from './process.ts';
import type { Universe } from './universe.ts';

/** What the provider does with one call. */
export const CALL_OUTCOMES = [
  'accept',
  'accept_and_lose_answer',
  'lose_before_accepting',
  'reject',
  'rate_limit',
  'quota',
  'partial',
] as const;
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/** What it reports about an accepted recipient, in order of occurrence. */
export type ReportPlan = readonly ('delivered' | 'deferred' | 'bounced_hard' | 'bounced_soft' | 'complained')[];

export const REPORT_PLANS: readonly ReportPlan[] = [
  ['delivered'],
  ['deferred', 'delivered'],
  ['bounced_hard'],
  ['deferred', 'bounced_soft'],
  ['delivered', 'complained'],
  ['delivered', 'bounced_hard'],
  ['delivered', 'bounced_hard', 'complained'],
  [],
];

/** One call as the provider's own log has it. */
export interface CallRecord {
  at: number;
  message_id: MessageId;
  recipients: string[];
  /** Recipients that it took responsibility for. */
  accepted: string[];
  /** Recipients that it said for certain it did not take. */
  refused: string[];
  answered: boolean;
  sha256: string;
}

export interface ProviderPlan {
  outcome: (message: OutgoingMessage, call: number) => CallOutcome;
  reports: (recipient: string) => ReportPlan;
  /** Delay of the n-th report of a recipient after acceptance, in ms. */
  delay: (n: number) => number;
}

/** A mail provider outside our control, with its own memory of what it took and what it has reported. */
export class ProviderDouble {
  readonly log: CallRecord[] = [];
  readonly reported: DeliveryEvent[] = [];
  readonly #universe: Universe;
  readonly #plan: ProviderPlan;
  readonly #emit: (event: DeliveryEvent) => void;
  #ids = 0;

  constructor(universe: Universe, plan: ProviderPlan, emit: (event: DeliveryEvent) => void) {
    this.#universe = universe;
    this.#plan = plan;
    this.#emit = emit;
  }

  /** Whether any report is still to come that would end a recipient's open status. */
  willEnd(recipient: string): boolean {
    return this.#plan.reports(recipient).some((report) => report !== 'deferred');
  }

  transport(process: Process, provider: Provider): MailTransport {
    return { provider, send: (message, deadlineMs) => this.#send(process, provider, message, deadlineMs) };
  }

  async #send(
    process: Process,
    provider: Provider,
    message: OutgoingMessage,
    deadlineMs: number,
  ): Promise<TransportResult> {
    const universe = this.#universe;
    const recipients = [...message.to, ...message.cc, ...message.bcc];
    const call = this.log.filter(({ message_id }) => message_id === message.message_id).length;
    const outcome = this.#plan.outcome(message, call);
    const sha256 = await sha256Hex(new Uint8Array(message.mime));
    const slow = universe.chance('slow_transport');
    await universe.sleep(process, slow ? universe.between(290_000, 400_000) : universe.between(20, 2_000));
    const record: CallRecord = {
      at: universe.now,
      message_id: message.message_id,
      recipients,
      accepted: [],
      refused: [],
      answered: false,
      sha256,
    };
    this.log.push(record);
    universe.log(`provider: ${outcome} ${message.message_id} ${recipients.length} recipients`);
    const result = this.#answer(outcome, provider, message, record);
    if (result === null) {
      await universe.sleep(process, deadlineMs);
      return { kind: 'unknown', reason: 'transport_timeout', detail: 'no answer' };
    }
    await universe.sleep(process, universe.between(1, 100));
    record.answered = true;
    return result;
  }

  #answer(
    outcome: CallOutcome,
    provider: Provider,
    message: OutgoingMessage,
    record: CallRecord,
  ): TransportResult | null {
    const { recipients } = record;
    switch (outcome) {
      case 'accept':
        return this.#accept(provider, message, record, recipients, [], []);
      case 'accept_and_lose_answer':
        this.#accept(provider, message, record, recipients, [], []);
        return null;
      case 'lose_before_accepting':
        return null;
      case 'reject':
        record.refused = recipients;
        return {
          kind: 'rejected',
          reason: 'provider_validation',
          code: 'E_VALIDATION_ERROR',
          detail: 'no',
          refused: [],
        };
      case 'rate_limit':
      case 'quota':
        record.refused = recipients;
        return { kind: 'retry_later', class: outcome, code: '429', detail: 'later', refused: [] };
      case 'partial': {
        const refused = recipients.filter((_address, index) => index % 3 === 1);
        const deferred = recipients.filter((_address, index) => index % 3 === 2);
        const taken = recipients.filter((_address, index) => index % 3 === 0);
        record.refused = [...refused, ...deferred];
        return this.#accept(provider, message, record, taken, refused, deferred);
      }
    }
  }

  #accept(
    provider: Provider,
    message: OutgoingMessage,
    record: CallRecord,
    taken: string[],
    refused: string[],
    deferred: string[],
  ): TransportResult {
    record.accepted = taken;
    // A relay has no id of its own: ours, the Message-ID, is all that both calls of one message share.
    const id = provider === 'smtp' ? `smtp:relay.example:${message.message_id}` : `prov-${++this.#ids}`;
    for (const recipient of taken) this.#planReports(provider, message, id, recipient);
    return {
      kind: 'accepted',
      provider_message_id: id,
      rfc_message_id: null,
      refused: refused.map((address) => ({
        address,
        smtp_code: '550',
        enhanced_code: '5.1.1',
        detail: '550 5.1.1 no',
      })),
      deferred,
      scheduled: [],
      copies: [],
    };
  }

  #planReports(provider: Provider, message: OutgoingMessage, id: string, recipient: string): void {
    const universe = this.#universe;
    let delay = universe.chance('event_early') ? 0 : 3_000;
    this.#plan.reports(recipient).forEach((report, index) => {
      delay += this.#plan.delay(index);
      universe.scheduler.after(delay, () => {
        const plain = reportEvent(message, id, recipient, report, index, universe.now);
        const event: DeliveryEvent =
          provider === 'ses' ? { ...plain, source: 'ses', our_message_id: message.message_id } : plain;
        this.reported.push(event);
        universe.log(`report: ${report} for ${recipient} of ${message.message_id}`);
        this.#emit(event);
        if (universe.chance('event_duplicate'))
          universe.scheduler.after(universe.between(1, 60_000), () => this.#emit(event));
      });
    });
  }

  /** Reports everything again, as a provider does that was never told it had been heard. */
  repeatReports(): void {
    for (const event of this.reported) this.#emit(event);
  }
}

function reportEvent(
  message: OutgoingMessage,
  id: string,
  recipient: string,
  report: ReportPlan[number],
  index: number,
  now: number,
): DeliveryEvent {
  const hard = report === 'bounced_hard';
  const kind: DeliveryKind = report === 'bounced_hard' || report === 'bounced_soft' ? 'bounced' : report;
  const code = hard ? '550' : report === 'delivered' ? '250' : '451';
  const enhanced = hard ? '5.1.1' : report === 'delivered' ? '2.0.0' : '4.2.0';
  const judged =
    kind === 'bounced'
      ? judgeBounce(hard ? 'hard' : 'soft', enhanced, code)
      : { hard: false, outcome: null, suppress: null, ...judgeOther(kind) };
  return {
    source: 'cloudflare',
    event_id: `${id}:${recipient}:${index}`,
    provider_message_id: id,
    sender: message.from.address,
    recipient,
    subject: message.subject,
    kind,
    ...judged,
    smtp_code: code,
    enhanced_code: enhanced,
    smtp_response: `${code} ${enhanced}`,
    occurred_at: now,
  };
}

import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import { sha256Hex } from '@pmail/core/hash.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type {
  MailTransport,
  OutgoingMessage,
  Provider,
  ProviderSuppression,
  TransportResult,
} from '@pmail/core/transport/types.ts';
import type { CaseId } from './case-list.ts';
import type { Process } from './process.ts';
import { type ReportPlan, reportEvent, strayEvent } from './reports.ts';
import type { Universe } from './universe.ts';

/** What the provider does with one call, and which case that is. */
export const CALL_CASES = {
  accept: null,
  accept_and_lose_answer: 'T3',
  lose_before_accepting: 'T2',
  accept_late: 'T5',
  accept_without_id: 'T7',
  accept_known_id: 'T7',
  reject: null,
  rate_limit: 'T1',
  quota: 'T8',
  server_error: 'T6',
  partial: 'T4',
  suppress: null,
  refuse_domain: null,
  out_of_step: 'T11',
  out_of_step_late: 'T11',
} as const satisfies Record<string, CaseId | null>;

export type CallOutcome = keyof typeof CALL_CASES;
export const CALL_OUTCOMES = Object.keys(CALL_CASES) as CallOutcome[];

/** One call as the provider's own log has it. */
export interface CallRecord {
  at: number;
  message_id: MessageId;
  provider: Provider;
  from: string;
  recipients: string[];
  /** Recipients that it took responsibility for. */
  accepted: string[];
  /** Recipients that it said for certain it did not take. */
  refused: string[];
  answered: boolean;
  /** What it made of the call; null for the providers of test tenants. */
  made: CallOutcome | null;
  sha256: string;
  reply_to: string | null;
  /** When the caller had last looked at who sends. */
  read_at: number | null;
}

/** One exchange from the first byte to the last, also one that its maker did not live to end. */
export interface Exchange {
  message_id: MessageId;
  begun_at: number;
  /** Infinity as long as nobody has its answer. */
  ended_at: number;
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
  readonly exchanges: Exchange[] = [];
  readonly reported: DeliveryEvent[] = [];
  /** Which message each report is about, by what the provider itself remembers. */
  readonly about = new Map<string, MessageId>();
  readonly #universe: Universe;
  readonly #plan: ProviderPlan;
  readonly #emit: (event: DeliveryEvent) => void;
  /** Every id it ever gave, with whom that mail went to. */
  readonly #given = new Map<string, Set<string>>();

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
    return {
      provider,
      send: (message, deadlineMs) => this.#send(process, provider, message, deadlineMs),
      findSuppressed: (message) =>
        this.#universe.call(process, 'call', `suppressions ${message.message_id}`, () => suppressedOf(message)),
    };
  }

  /** Writes a call into the log; what the provider makes of it is filled in later. */
  async record(
    process: Process,
    provider: Provider,
    message: OutgoingMessage,
    recipients: string[],
  ): Promise<CallRecord> {
    const sha256 = await sha256Hex(new Uint8Array(message.mime));
    const record: CallRecord = {
      at: this.#universe.scheduler.now,
      message_id: message.message_id,
      provider,
      from: message.from.address,
      recipients,
      accepted: [],
      refused: [],
      answered: false,
      made: null,
      sha256,
      reply_to: message.reply_to,
      read_at: process.readAt,
    };
    this.log.push(record);
    return record;
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
    const exchange: Exchange = {
      message_id: message.message_id,
      begun_at: universe.scheduler.now,
      ended_at: Number.POSITIVE_INFINITY,
    };
    this.exchanges.push(exchange);
    const slow = universe.chance('slow_transport');
    await universe.sleep(process, slow ? universe.between(290_000, 400_000) : universe.between(20, 2_000));
    const record = await this.record(process, provider, message, recipients);
    record.made = outcome;
    universe.log(`provider: ${outcome} ${message.message_id} ${recipients.length} recipients`);
    universe.meet(CALL_CASES[outcome] ?? undefined);
    const result = this.#answer(outcome, provider, message, record, deadlineMs);
    if (universe.chance('die_in_call')) {
      universe.log(`killed in its call: ${process.name}`);
      universe.meet('T9');
      process.kill();
    }
    if (result === null) {
      await universe.sleep(process, deadlineMs);
      exchange.ended_at = universe.scheduler.now;
      return { kind: 'unknown', reason: 'transport_timeout', detail: 'no answer' };
    }
    await universe.sleep(process, universe.between(1, 100));
    record.answered = true;
    exchange.ended_at = universe.scheduler.now;
    return result;
  }

  #answer(
    outcome: CallOutcome,
    provider: Provider,
    message: OutgoingMessage,
    record: CallRecord,
    deadlineMs: number,
  ): TransportResult | null {
    const { recipients } = record;
    switch (outcome) {
      case 'accept':
        return this.#accept(message, record, this.#newId(provider, message, recipients));
      case 'accept_and_lose_answer':
        this.#accept(message, record, this.#newId(provider, message, recipients));
        return null;
      case 'accept_late':
        this.#universe.scheduler.after(deadlineMs + this.#universe.between(1_000, 30_000), () => {
          this.#universe.log(`provider: took ${message.message_id} late`);
          this.#accept(message, record, this.#newId(provider, message, recipients));
        });
        return null;
      case 'accept_without_id':
        return {
          ...this.#accept(message, record, this.#newId(provider, message, recipients)),
          provider_message_id: null,
        };
      case 'accept_known_id':
        return this.#accept(message, record, this.#knownId(provider, message, recipients));
      case 'lose_before_accepting':
        return null;
      case 'server_error':
        return { kind: 'unknown', reason: 'transport_connection_lost', detail: 'E_INTERNAL_SERVER_ERROR' };
      case 'reject':
        record.refused = recipients;
        return {
          kind: 'rejected',
          reason: 'provider_validation',
          code: 'E_VALIDATION_ERROR',
          detail: 'no',
          refused: [],
        };
      case 'suppress':
        record.refused = recipients;
        return { kind: 'suppressed', code: 'E_RECIPIENT_SUPPRESSED', detail: 'suppressed' };
      case 'refuse_domain':
        record.refused = recipients;
        return {
          kind: 'rejected',
          reason: 'sender_domain_unavailable',
          code: 'E_SENDER_NOT_VERIFIED',
          detail: 'no',
          refused: [],
        };
      // Nonsense before the final dot proves that nothing was sent; behind it, it proves nothing at all.
      case 'out_of_step':
        record.refused = recipients;
        return { kind: 'retry_later', class: 'relay', code: 'smtp_out_of_step', detail: 'nonsense', refused: [] };
      case 'out_of_step_late':
        this.#accept(message, record, this.#newId(provider, message, recipients));
        return { kind: 'unknown', reason: 'transport_connection_lost', detail: 'smtp_out_of_step' };
      case 'rate_limit':
      case 'quota':
        record.refused = recipients;
        return { kind: 'retry_later', class: outcome, code: '429', detail: 'later', refused: [] };
      case 'partial': {
        const third = (n: number): string[] => recipients.filter((_address, index) => index % 3 === n);
        const [taken, refused, deferred] = [third(0), third(1), third(2)];
        record.refused = [...refused, ...deferred];
        return this.#accept(message, record, this.#newId(provider, message, taken), { taken, refused, deferred });
      }
    }
  }

  /** A relay has no id of its own: ours, the Message-ID, is all that both calls of one message share. */
  #newId(provider: Provider, message: OutgoingMessage, recipients: string[]): string {
    const id = provider === 'smtp' ? `smtp:relay.example:${message.message_id}` : `prov-${this.#given.size + 1}`;
    return this.#give(id, recipients);
  }

  /** An id from before, of mail to other people; a new one when there is none. */
  #knownId(provider: Provider, message: OutgoingMessage, recipients: string[]): string {
    const known = [...this.#given].find(
      ([id, people]) => id.startsWith('prov-') && recipients.every((address) => !people.has(address)),
    );
    return known === undefined ? this.#newId(provider, message, recipients) : this.#give(known[0], recipients);
  }

  #give(id: string, recipients: string[]): string {
    this.#given.set(id, new Set([...(this.#given.get(id) ?? []), ...recipients]));
    return id;
  }

  #accept(
    message: OutgoingMessage,
    record: CallRecord,
    id: string,
    who: { taken: string[]; refused: string[]; deferred: string[] } = {
      taken: record.recipients,
      refused: [],
      deferred: [],
    },
  ): Extract<TransportResult, { kind: 'accepted' }> {
    record.accepted = who.taken;
    for (const recipient of who.taken) this.#planReports(record.provider, message, id, recipient);
    return {
      kind: 'accepted',
      provider_message_id: id,
      rfc_message_id: null,
      refused: who.refused.map((address) => ({
        address,
        smtp_code: '550',
        enhanced_code: '5.1.1',
        detail: '550 5.1.1 no',
      })),
      deferred: who.deferred,
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
        this.about.set(event.event_id, message.message_id);
        universe.log(`report: ${report} for ${recipient} of ${message.message_id}`);
        this.#emit(event);
        if (universe.chance('event_duplicate'))
          universe.scheduler.after(universe.between(1, 60_000), () => this.#emit(event));
        if (universe.chance('event_stray')) this.#emit(strayEvent(event, universe.random() < 0.5));
      });
    });
  }

  /** Reports everything again but what is known to have been heard. */
  repeatReports(heard: ReadonlySet<string>): void {
    for (const event of this.reported) if (!heard.has(event.event_id)) this.#emit(event);
  }
}

/** Each call that is refused so is refused because of its first recipient. */
function suppressedOf({ to, cc, bcc }: OutgoingMessage): ProviderSuppression[] {
  return [...to, ...cc, ...bcc].slice(0, 1).map((address) => ({ address, reason: 'manual', expires_at: null }));
}

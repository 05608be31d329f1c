import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import type { IdentityId, MessageId, TenantId } from '@pmail/core/ids.ts';
import type { EventAnswer } from '@pmail/engine/mailbox/apply-event.ts';
import type { BeginAnswer, BeginRequest } from '@pmail/engine/mailbox/begin-transport.ts';
import type { CancelAnswer, StopAnswer } from '@pmail/engine/mailbox/cancel.ts';
import type { IngestAnswer } from '@pmail/engine/mailbox/ingest.ts';
import type { OutcomeRequest } from '@pmail/engine/mailbox/record-outcome.ts';
import type { ResolveAnswer } from '@pmail/engine/mailbox/resolve.ts';
import type { SubmitAnswer, SubmitRequest } from '@pmail/engine/mailbox/submit-types.ts';
import type { ReserveAnswer, SendState } from '@pmail/engine/quota/types.ts';
import type { Sql } from '@pmail/engine/sql.ts';
import { misjudged } from './candidates.ts';
import type { Violation } from './checkers/evidence.ts';
import { Crash, NetworkLost, ObjectReset, StorageFailed } from './process.ts';
import type { Universe } from './universe.ts';

/** How far apart a person's word and a report may be to count as having met. */
const MEETING_MS = 120_000;

/** So many reports about one mailbox within so many ms are a flood. */
const FLOOD_REPORTS = 30;
const FLOOD_MS = 10_000;

const SUPPRESSED_SQL = `SELECT 1 FROM suppressions
  WHERE address_hash = ? AND tenant_id = (SELECT tenant_id FROM identities WHERE id = ?)`;

/**
 * Watches what objects answer, at the moment they do and whether or not anybody hears it, and notices the cases that
 * show there. It changes nothing.
 */
export class Watcher {
  readonly #universe: Universe;
  readonly #directory: Sql;
  /** Hashes under which addresses are suppressed, as far as anybody has asked for them. */
  readonly hashes = new Map<string, string>();
  readonly #consuming = new Map<MessageId, number>();
  /** The message that was last accepted under a key of an identity. */
  readonly #accepted = new Map<string, MessageId>();
  readonly #outcomes = new Set<string>();
  readonly #days = new Map<TenantId, string>();
  readonly #reported = new Map<MessageId, number>();
  readonly #applied = new Map<IdentityId, number[]>();
  /** What objects have done that they must not do. */
  readonly wrong: Violation[] = [];
  readonly #resolved = new Map<MessageId, number>();
  /** What people have said of each message, whether or not they heard an answer. */
  readonly said = new Map<MessageId, Set<'sent' | 'not_sent'>>();
  /** What was said and taken for true, as its mailbox answered. */
  readonly believed: { message_id: MessageId; outcome: 'sent' | 'not_sent' }[] = [];
  /** Every report that a mailbox was asked to apply. */
  readonly brought = new Map<string, DeliveryEvent>();

  constructor(universe: Universe, directory: Sql) {
    this.#universe = universe;
    this.#directory = directory;
  }

  /** A consumer has a message in hand until what it returns is called. */
  consumes(id: MessageId): () => void {
    this.#consuming.set(id, (this.#consuming.get(id) ?? 0) + 1);
    return () => this.#consuming.set(id, (this.#consuming.get(id) ?? 1) - 1);
  }

  submit(identity: IdentityId, { key_hash }: SubmitRequest, answer: SubmitAnswer): SubmitAnswer {
    if (answer.ok) {
      const key = `${identity} ${key_hash}`;
      const before = this.#accepted.get(key);
      if (before !== undefined && before !== answer.message.id) this.#universe.meet('S9');
      this.#accepted.set(key, answer.message.id);
      if (answer.message.flags.includes('body_truncated')) this.#universe.meet('S15');
    } else if (answer.code === 'request_in_progress') this.#universe.meet('S7');
    else if (answer.code === 'idempotency_conflict') this.#universe.meet('S8');
    else if (answer.code === 'message_too_large') this.#universe.meet('S15');
    return answer;
  }

  reserve(tenant: TenantId, answer: ReserveAnswer): ReserveAnswer {
    if (answer.kind === 'ok') {
      const before = this.#days.get(tenant);
      if (before !== undefined && before !== answer.day) this.#universe.meet('K4');
      this.#days.set(tenant, answer.day);
    }
    return answer;
  }

  sendState(state: SendState): SendState {
    if (state === 'unknown') this.#universe.meet('S10');
    return state;
  }

  /** What somebody caught. The world fails in known ways; anything else is a fault of the code that nobody meant. */
  threw(who: string, error: unknown): void {
    if (isOfTheWorld(error)) return;
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    this.wrong.push({ invariant: 'error', text: `${who} threw ${text}` });
  }

  begin(identity: IdentityId, { facts }: BeginRequest, answer: BeginAnswer): BeginAnswer {
    const universe = this.#universe;
    if (answer.kind === 'already_claimed') universe.meet('C1');
    else if (answer.kind === 'not_queued') universe.meet('C2');
    else if (answer.kind === 'claimed') {
      const { to, cc, bcc, fallback } = answer.send;
      if (fallback) universe.meet('C9 fallback');
      if ([...to, ...cc, ...bcc].some((address) => this.#isSuppressed(identity, address))) {
        universe.meet('C9 suppressed');
      }
    } else if (facts.addresses.some(({ domain }) => domain.state !== 'healthy' && domain.state !== 'degraded')) {
      universe.meet('C9 domain');
    }
    return answer;
  }

  #isSuppressed(identity: IdentityId, address: string): boolean {
    const hash = this.hashes.get(address);
    return hash !== undefined && this.#directory.first(SUPPRESSED_SQL, hash, identity) !== undefined;
  }

  stop(reason: string, answer: StopAnswer): StopAnswer {
    if (answer.kind !== 'nothing') {
      this.#universe.meet(reason === 'tenant_suspended' ? 'C9 suspended' : 'C9 paused');
    }
    return answer;
  }

  cancel(id: MessageId, answer: CancelAnswer): CancelAnswer {
    if ((this.#consuming.get(id) ?? 0) > 0) this.#universe.meet('S14');
    return answer;
  }

  outcome({ claim_token: token }: OutcomeRequest): void {
    if (this.#outcomes.has(token)) this.#universe.meet('O2');
    this.#outcomes.add(token);
  }

  /** @param since when the mailbox was asked to apply the report */
  event(identity: IdentityId, sql: Sql, event: DeliveryEvent, since: number, answer: EventAnswer): EventAnswer {
    const universe = this.#universe;
    const { kind } = event;
    if (answer.kind === 'not_found') {
      universe.meet(answer.ambiguous ? 'T3 several' : 'V3');
      return answer;
    }
    const wrong = misjudged(sql, event, since, answer);
    if (wrong !== null) this.wrong.push({ invariant: 'T3', text: wrong });
    if (answer.kind === 'reconciled') universe.meet(event.our_message_id == null ? 'T3 one' : 'T3 named');
    if (this.#isFlood(identity)) universe.meet('V9');
    if (answer.kind === 'duplicate') universe.meet('V1');
    else if (answer.kind === 'ignored') universe.meet('V2');
    else {
      if (kind !== 'deferred') this.#reported.set(answer.message_id, universe.now);
      this.#meetPerson(answer.message_id);
    }
    return answer;
  }

  says(id: MessageId, outcome: 'sent' | 'not_sent'): void {
    this.said.set(id, (this.said.get(id) ?? new Set()).add(outcome));
  }

  resolve(id: MessageId, outcome: 'sent' | 'not_sent', answer: ResolveAnswer): ResolveAnswer {
    if (answer.ok) {
      this.believed.push({ message_id: id, outcome });
      this.#resolved.set(id, this.#universe.now);
      this.#meetPerson(id);
    }
    return answer;
  }

  /** Many reports about one mailbox within a moment. */
  #isFlood(identity: IdentityId): boolean {
    const { now } = this.#universe;
    const recent = [...(this.#applied.get(identity) ?? []).filter((at) => at > now - FLOOD_MS), now];
    this.#applied.set(identity, recent);
    return recent.length >= FLOOD_REPORTS;
  }

  #meetPerson(id: MessageId): void {
    const [person, report] = [this.#resolved.get(id), this.#reported.get(id)];
    if (person !== undefined && report !== undefined && Math.abs(person - report) < MEETING_MS) {
      this.#universe.meet('O5');
    }
  }

  ingest(answer: IngestAnswer): IngestAnswer {
    if (answer.duplicate) this.#universe.meet('V11');
    return answer;
  }
}

function isOfTheWorld(error: unknown): boolean {
  return [Crash, NetworkLost, ObjectReset, StorageFailed].some((known) => error instanceof known);
}

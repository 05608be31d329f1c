import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import type { DeliveryStatus } from '@pmail/core/delivery/status.ts';
import type { SimIdentity } from '../population.ts';
import type { DeliveryTrace, MessageTrace, Noted, Numbered, Remembered } from '../remembered.ts';
import { BY_REPORT, SCRIPTED } from './design.ts';
import { type Evidence, mailbox, rowsOf, type Violation } from './evidence.ts';

type Wrong = (text: string) => void;

/**
 * I2: every status of a recipient is true. It came from a report that was made and heard, from what the provider did with
 * the calls, or from a person's word, folded by the design's own table; and what was reported is not missing.
 */
export function endsTrue(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  const wrong: Wrong = (text) => {
    violations.push({ invariant: 'I2', text });
  };
  for (const identity of evidence.identities) {
    const now = rowsOf(evidence, identity);
    for (const rows of [now, ...mailbox(evidence, identity).forgotten]) {
      // A message that was canceled has ended whatever its recipients say.
      for (const message of rows.messages.filter(({ direction, status }) => isSent(direction, status))) {
        for (const delivery of rows.deliveries.filter(({ message_rowid }) => message_rowid === message.rowid)) {
          new Recipient(evidence, identity, rows, message, delivery, wrong).follow();
        }
      }
    }
    reportsTakenIn(evidence, identity, now, wrong);
    suppressionsWritten(evidence, identity, now, wrong);
  }
  wordsKept(evidence, wrong);
  return violations;
}

function isSent(direction: MessageTrace['direction'], status: string): boolean {
  return direction === 'outbound' && status !== 'canceled';
}

/** One recipient of one message, from the beginning to the end. */
class Recipient {
  readonly #evidence: Evidence;
  readonly #rows: Remembered;
  readonly #message: MessageTrace;
  readonly #delivery: DeliveryTrace;
  readonly #restored: boolean;
  readonly #taken: boolean;
  readonly #wrong: Wrong;

  constructor(
    evidence: Evidence,
    identity: SimIdentity,
    rows: Remembered,
    message: MessageTrace,
    delivery: DeliveryTrace,
    wrong: Wrong,
  ) {
    this.#evidence = evidence;
    this.#rows = rows;
    this.#message = message;
    this.#delivery = delivery;
    this.#restored = mailbox(evidence, identity).restored;
    this.#taken = this.#calls().some(({ accepted }) => accepted.includes(delivery.address));
    this.#wrong = (text) => wrong(`${message.id} to ${delivery.address} ${text}`);
  }

  #calls(): Evidence['deployment']['provider']['log'] {
    const { provider } = this.#evidence.deployment;
    return provider.log.filter(
      ({ message_id: id, recipients }) => id === this.#message.id && recipients.includes(this.#delivery.address),
    );
  }

  /** Goes through changes and reports in their order. */
  follow(): void {
    let status: DeliveryStatus | '' = '';
    let due: DeliveryStatus | null = null;
    for (const event of this.#inOrder()) {
      if ('ids' in event) {
        if (due !== null) this.#wrong(`was reported ${due} and stayed ${status}`);
        due = status === '' ? null : this.#afterReport(event, status);
        continue;
      }
      if (event.old !== status) this.#wrong(`went from ${event.old}, and was ${status}`);
      if (due === null) this.#ownStep(event);
      else if (event.new !== due) this.#wrong(`was reported ${due} and went ${event.old} to ${event.new}`);
      due = null;
      status = event.new as DeliveryStatus;
    }
    if (due !== null) this.#wrong(`was reported ${due} and stayed ${status}`);
    if (status !== this.#delivery.status)
      this.#wrong(`is ${this.#delivery.status}, and its last change says ${status}`);
  }

  #inOrder(): (Numbered | Noted)[] {
    const { history, noted } = this.#rows;
    const mine = ({ rowid, address }: Numbered | Noted): boolean =>
      rowid === this.#message.rowid && address === this.#delivery.address;
    const place = (one: Numbered | Noted): number => ('ids' in one ? one.after_n + 0.5 : one.n);
    return [...history.filter(mine), ...noted.filter(mine)].sort((a, b) => place(a) - place(b));
  }

  /** What the latest report has to make of a status; null for nothing. */
  #afterReport({ ids }: Noted, status: DeliveryStatus): DeliveryStatus | null {
    const id = (JSON.parse(ids) as string[]).at(-1) ?? '';
    const event = this.#evidence.deployment.watcher.brought.get(id);
    if (event === undefined || !this.#isAboutIt(event)) {
      this.#wrong(`took in ${id}, which is no report about it`);
      return null;
    }
    return BY_REPORT[status][event.kind] ?? null;
  }

  #isAboutIt(event: DeliveryEvent): boolean {
    const { id, subject } = this.#message;
    const { address } = this.#delivery;
    if (event.recipient !== address) return false;
    const { provider } = this.#evidence.deployment;
    const about = provider.about.get(event.event_id);
    if (about === undefined) return this.#isOfTestProvider(event);
    const made = provider.reported.find(({ event_id }) => event_id === event.event_id);
    if (made?.kind !== event.kind) return false;
    if (about === id) return this.#taken;
    // Of two alike a report that names neither can only mean the one that is uncertain by then.
    return (event.our_message_id ?? null) === null && event.subject === subject;
  }

  #isOfTestProvider({ event_id, source, kind }: DeliveryEvent): boolean {
    if ((source !== 'simulator' && source !== 'loopback') || !event_id.includes(this.#message.id)) return false;
    const [local = '', host] = this.#delivery.address.split('@');
    const kinds =
      host === 'simulator.invalid' ? (SCRIPTED[local] ?? ['delivered']) : ['delivered', 'bounced', 'failed'];
    return this.#taken && (kinds as readonly string[]).includes(kind);
  }

  /** A change without a report has a reason of its own. */
  #ownStep({ old, new: next }: Numbered): void {
    const step = `went ${old} to ${next}`;
    const said = this.#evidence.deployment.watcher.said.get(this.#message.id);
    const bySaid = (word: 'sent' | 'not_sent'): boolean => old === 'uncertain' && said?.has(word) === true;
    if (old === '') {
      if (next !== 'queued' && next !== 'suppressed' && !(next === 'uncertain' && this.#restored)) {
        this.#wrong(`began as ${next}`);
      }
    } else if (next === 'submitted') {
      if (!this.#taken && !bySaid('sent')) this.#wrong(`${step}, and no provider took it`);
    } else if (next === 'failed' && old === 'uncertain') {
      if (!bySaid('not_sent')) this.#wrong(`${step}, and nobody said so`);
    } else if (next === 'rejected' || next === 'failed') {
      if (this.#taken) this.#wrong(`${step}, and its provider took it`);
    } else if (next === 'uncertain') {
      if (!this.#isDoubtful()) this.#wrong(`${step}, and the answer to each call is known`);
    } else if (next === 'suppressed') {
      if (!this.#isOnProvidersList()) this.#wrong(`${step}, and no provider said so`);
    } else this.#wrong(`${step}, and nothing reported it`);
  }

  #isDoubtful(): boolean {
    const open = ({ result, late }: Remembered['attempts'][number]): boolean =>
      result === null || result === 'unknown' || late === 1;
    return this.#restored || this.#rows.attempts.some((one) => one.message_rowid === this.#message.rowid && open(one));
  }

  #isOnProvidersList(): boolean {
    return this.#calls().some(
      ({ made, recipients }) => made === 'suppress' && recipients[0] === this.#delivery.address,
    );
  }
}

function idsOf({ provider_event_ids_json: json }: DeliveryTrace): string[] {
  return JSON.parse(json) as string[];
}

/** A report that names its message by an id which is known here has been taken in. */
function reportsTakenIn(evidence: Evidence, identity: SimIdentity, rows: Remembered, wrong: Wrong): void {
  const { provider } = evidence.deployment;
  // One that was put back may have forgotten under which id its provider has it.
  if (mailbox(evidence, identity).restored) return;
  const sent = new Map(rows.messages.filter((one) => isSent(one.direction, one.status)).map((one) => [one.id, one]));
  for (const event of provider.reported) {
    const message = sent.get(provider.about.get(event.event_id) ?? ('' as never));
    if (message === undefined) continue;
    const named = event.our_message_id != null || message.provider_message_id === event.provider_message_id;
    const delivery = rows.deliveries.find(
      ({ message_rowid, address }) => message_rowid === message.rowid && address === event.recipient,
    );
    if (!named || (delivery !== undefined && idsOf(delivery).includes(event.event_id))) continue;
    wrong(`${message.id} to ${event.recipient} was reported ${event.kind}, and never heard of it`);
  }
}

/** Whoever bounced for good or complained is on the tenant's list. */
function suppressionsWritten({ deployment }: Evidence, identity: SimIdentity, rows: Remembered, wrong: Wrong): void {
  const known = new Map(deployment.provider.reported.map((event) => [event.event_id, event]));
  const listed = new Set(
    deployment.directory
      .all<{ address_hash: string }>('SELECT address_hash FROM suppressions WHERE tenant_id = ?', identity.tenant_id)
      .map(({ address_hash }) => address_hash),
  );
  for (const delivery of rows.deliveries) {
    for (const id of idsOf(delivery)) {
      const event = known.get(id);
      if (event === undefined || !(event.kind === 'complained' || (event.kind === 'bounced' && event.hard))) continue;
      const hash = deployment.watcher.hashes.get(delivery.address) ?? '';
      if (!listed.has(hash)) wrong(`${delivery.address} is on no list after ${id}, which was ${event.kind}`);
    }
  }
}

/** What a person said and a mailbox took for true has changed what was uncertain. */
function wordsKept(evidence: Evidence, wrong: Wrong): void {
  for (const { message_id: id, outcome } of evidence.deployment.watcher.believed) {
    for (const identity of evidence.identities) {
      const { restored } = mailbox(evidence, identity);
      const { messages, trace } = rowsOf(evidence, identity);
      const message = restored ? undefined : messages.find((one) => one.id === id);
      if (message === undefined) continue;
      const next = outcome === 'sent' ? 'submitted' : 'failed';
      const kept = trace.some(
        (step) =>
          step.rowid === message.rowid && step.address !== null && step.old === 'uncertain' && step.new === next,
      );
      if (!kept) wrong(`${id} was ${outcome} by a person's word, and nothing became ${next}`);
    }
  }
}

import type { DeliveryStatus, OutboundStatus } from '@pmail/core/delivery/status.ts';
import type { Numbered, Remembered } from '../remembered.ts';
import { BY_REPORT, BY_US, OF_MESSAGE, summedUp } from './design.ts';
import { type Evidence, mailbox, rowsOf, type Violation } from './evidence.ts';

/**
 * I3: statuses move only along the table, from how a row may begin, also in what a mailbox has forgotten that was put back;
 * and a message is at any time what its recipients make of it.
 */
export function allowedTransitions(evidence: Evidence): Violation[] {
  return evidence.identities.flatMap((identity) => {
    const { forgotten, restored } = mailbox(evidence, identity);
    return [rowsOf(evidence, identity), ...forgotten].flatMap((rows) => {
      const broken = [...alongTable(rows, restored), ...summed(rows)];
      return broken.map((text) => ({ invariant: 'I3', text: `${identity.address}: ${text}` }));
    });
  });
}

function alongTable({ messages, history }: Remembered, restored: boolean): string[] {
  const outbound = outboundOf(messages);
  return history.flatMap(({ rowid, address, old, new: next }) => {
    if (!outbound.has(rowid)) return [];
    if (old === '') {
      const mayBegin = next === 'queued' || next === 'suppressed' || (next === 'uncertain' && restored);
      return mayBegin ? [] : [`row ${rowid} ${address ?? ''} began as ${next}`];
    }
    const allowed =
      address === null
        ? OF_MESSAGE[old as OutboundStatus].includes(next as OutboundStatus)
        : mayFollow(old as DeliveryStatus, next as DeliveryStatus);
    return allowed ? [] : [`row ${rowid} ${address ?? ''} went ${old} to ${next}`];
  });
}

function mayFollow(old: DeliveryStatus, next: DeliveryStatus): boolean {
  return BY_US[old].includes(next) || Object.values(BY_REPORT[old]).includes(next);
}

function outboundOf(messages: Remembered['messages']): Set<number> {
  return new Set(messages.filter(({ direction }) => direction === 'outbound').map(({ rowid }) => rowid));
}

/** Follows each message with its recipients, change by change. */
function summed({ messages, history }: Remembered): string[] {
  const wrong: string[] = [];
  const outbound = outboundOf(messages);
  for (const [rowid, steps] of Map.groupBy(history, (step) => step.rowid)) {
    if (outbound.has(rowid)) wrong.push(...followed(rowid, steps));
  }
  return wrong;
}

function followed(rowid: number, steps: readonly Numbered[]): string[] {
  const wrong: string[] = [];
  const recipients = new Map<string, DeliveryStatus>();
  let status: OutboundStatus = 'queued';
  // Its recipients have changed since the message was last looked at.
  let behind = false;
  for (const { address, old, new: next } of steps) {
    if (address !== null) {
      recipients.set(address, next as DeliveryStatus);
      if (old !== '') behind = true;
      continue;
    }
    const to = next as OutboundStatus;
    if (old !== '' && !isRight(status, to, [...recipients.values()])) {
      wrong.push(`row ${rowid} went ${status} to ${to} with ${said(recipients)}`);
    }
    status = to;
    behind = false;
  }
  const all = [...recipients.values()];
  // A message that was canceled has ended whatever its recipients say, and one that has just become uncertain is.
  const right = status === 'canceled' || summedUp(status, all) === status;
  const doubtful = status === 'uncertain' && !behind && all.includes('uncertain');
  if (!right && !doubtful) wrong.push(`row ${rowid} is ${status} with ${said(recipients)}`);
  return wrong;
}

function isRight(before: OutboundStatus, next: OutboundStatus, recipients: DeliveryStatus[]): boolean {
  if (next === 'canceled') return recipients.every((status) => status === 'queued' || status === 'suppressed');
  // A call whose answer nobody knows makes the whole message uncertain.
  if (next === 'uncertain') return recipients.includes('uncertain') && !recipients.includes('queued');
  return summedUp(before, recipients) === next;
}

function said(recipients: ReadonlyMap<string, DeliveryStatus>): string {
  return [...recipients.values()].join(', ');
}

import { judgeBounce, judgeOther } from '@pmail/core/delivery/bounce-class.ts';
import type { DeliveryEvent, DeliveryKind } from '@pmail/core/delivery/events.ts';
import type { OutgoingMessage } from '@pmail/core/transport/types.ts';

/** What a provider reports about an accepted recipient, in order of occurrence. */
export type ReportPlan = readonly (Exclude<DeliveryKind, 'bounced'> | 'bounced_hard' | 'bounced_soft')[];

export const REPORT_PLANS: readonly ReportPlan[] = [
  ['delivered'],
  ['deferred', 'delivered'],
  ['bounced_hard'],
  ['deferred', 'bounced_soft'],
  ['delivered', 'complained'],
  ['delivered', 'bounced_hard'],
  ['delivered', 'bounced_hard', 'complained'],
  // Providers that took it and then gave up, or took it back.
  ['deferred', 'failed'],
  ['failed'],
  ['rejected'],
  [],
];

/** Every order of every choice of some things, from none of them to all. */
export function ordersOf<T>(things: readonly T[]): T[][] {
  return [
    [],
    ...things.flatMap((first) => ordersOf(things.filter((other) => other !== first)).map((rest) => [first, ...rest])),
  ];
}

export function reportEvent(
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

/** The same report about mail that is not ours: of a sender nobody has, or under an id that was never given. */
export function strayEvent(event: DeliveryEvent, unknownSender: boolean): DeliveryEvent {
  const stray = { ...event, event_id: `stray:${event.event_id}` };
  if (unknownSender) return { ...stray, sender: 'somebody@elsewhere.example' };
  return { ...stray, provider_message_id: 'prov-unknown', our_message_id: null, subject: 'Nothing that we sent' };
}

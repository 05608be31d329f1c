/**
 * Named places in the send path where a process can die. `mark` does nothing outside tests. The simulator makes it crash
 * there, and a run fails when one of these was never reached; the tests of the Worker in its runtime abort the object or
 * the consumer at each, and fail when a name of this list has no test.
 */
export const MARKS = [
  // Submit, in the mailbox
  'submit.planned',
  'submit.composed',
  'submit.stored',
  'submit.reserved',
  'submit.in_transaction',
  'submit.committed',
  'submit.enqueued',
  'submit.release_recorded',
  // Dispatch alarm
  'dispatch.before_send',
  'dispatch.after_send',
  // The consumer of the send queue
  'consume.start',
  'consume.scope_read',
  'consume.claimed',
  'consume.message_read',
  'consume.transport_done',
  'consume.suppressed_synced',
  'consume.recorded',
  'consume.check_asked',
  'consume.requeued',
  // Claim and outcome, in the mailbox
  'claim.in_transaction',
  'claim.committed',
  'claim.expired',
  'outcome.in_transaction',
  'outcome.committed',
  'round.in_transaction',
  'round.committed',
  // Quota bookkeeping owed by the mailbox
  'quota_task.before_call',
  'quota_task.after_call',
  'quota.in_transaction',
  'quota.hold_expired',
  // Delivery events
  'event.start',
  'event.in_transaction',
  'event.applied',
  'event.suppressed',
  'event.outcome_recorded',
  'event.paused',
  // Outbox
  'outbox.before_dispatch',
  'outbox.after_dispatch',
  // Webhooks: the fan-out of an event, an attempt at an endpoint
  'webhook.fanned_out',
  'webhook.begun',
  'webhook.answered',
  'webhook.recorded',
  // Reports of the test providers, loopback delivery
  'followup.before_send',
  'followup.after_send',
  'inbound.start',
  'inbound.in_transaction',
  'inbound.stored',
  // A person
  'cancel.in_transaction',
  'cancel.committed',
  'resolve.in_transaction',
  'resolve.committed',
] as const;

export type MarkName = (typeof MARKS)[number];

export type Mark = (name: MarkName) => void;

export const noMark: Mark = () => {};

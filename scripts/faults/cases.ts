/**
 * The list of faults: what can go wrong between two steps of the service, by the ids that tests carry in their titles.
 * The page `docs/faults.md` is made from it, and a case that no test names fails `npm run check` unless `OPEN` says why.
 */

export interface Group {
  title: string;
  cases: Readonly<Record<string, string>>;
}

export const GROUPS: readonly Group[] = [
  {
    title: 'Accepting a send',
    cases: {
      S1: 'the process dies before the message is stored',
      S2: 'it dies after the store and before the commit, so an object nobody knows is left over',
      S3: 'the object store fails, or stores and its answer is lost',
      S4: 'storage throws between two statements of the transaction',
      S5: 'the transaction is cut off before it commits',
      S6: 'the process dies after the commit and before the client has its answer',
      S7: 'the same key and body arrive twice at once',
      S8: 'the same key arrives with another body',
      S9: 'a key is used again after its 30 days',
      S10: 'the quota is reserved and the commit fails',
      S11: "the quota's answer is lost",
      S12: 'the quota object is away',
      S13: 'the directory is away, or answers with what was true a while ago',
      S14: 'somebody cancels at the moment at which a consumer takes the send up',
      S15: 'a row or a body is larger than the platform takes',
    },
  },
  {
    title: 'Bringing it to the queue',
    cases: {
      E1: 'the process dies after the commit, before the message is queued',
      E2: 'queueing fails',
      E3: 'queueing works and its answer is lost',
      E4: 'the alarm that queues again dies before it has written that down',
      E5: 'an alarm fires twice, late, never, or has used its retries up',
      E6: 'several deadlines fall due at the one alarm an object has',
      E7: 'the queue is paused for longer than it keeps messages, or gives one up',
    },
  },
  {
    title: 'Claiming the one call',
    cases: {
      C1: 'one job is at two consumers at once',
      C2: 'a job comes again when everything is over',
      C3: 'an older job comes after a newer one',
      C4: 'the answer to a claim is lost',
      C5: 'a consumer dies with its claim',
      C6: 'a consumer is so slow that its claim goes stale, and reports afterwards',
      C7: 'the claim cannot be committed',
      C8: 'a consumer dies in the middle of its batch',
      C9: 'the identity, the tenant, a recipient or the domain has changed since acceptance',
    },
  },
  {
    title: 'The call to the provider',
    cases: {
      T1: 'nothing can have been taken: no connection, or a refusal for now',
      T2: 'the connection is lost after a part was sent',
      T3: 'the connection is lost when everything was sent and nothing answered',
      T4: 'recipients are answered differently',
      T5: 'our time runs out, and the provider takes the message afterwards',
      T6: 'the provider fails with an error of its own',
      T7: 'success without an id, or with one that was seen before',
      T8: "the provider's limit for a day is reached",
      T9: 'a consumer is killed in the middle of the call',
      T10: 'the stored message is missing, or is another',
      T11: 'a relay talks out of turn, without end, or in lines without end',
    },
  },
  {
    title: 'Writing down how it ended',
    cases: {
      O1: 'the consumer dies between the call and the record',
      O2: 'an outcome is recorded twice',
      O3: 'the mailbox is away when the outcome is to be recorded',
      O4: 'the consumer dies between the record and its acknowledgement',
      O5: 'a person settles a send while a report about it arrives',
    },
  },
  {
    title: 'Reports, mail and webhooks',
    cases: {
      V1: 'the same report comes many times',
      V2: 'reports come in any order',
      V3: 'a report comes before our own record',
      V4: 'a report names an id or a sender that nobody knows',
      V5: 'a complaint comes after the delivery',
      V6: 'a bounce comes after the delivery',
      V7: 'the process dies between a report and what follows from it',
      V8: 'a notification is forged or stale',
      V9: 'ten thousand reports arrive at one mailbox',
      V10: "a customer's webhook fails, hangs or redirects",
      V11: 'mail arrives twice, or its store fails',
    },
  },
  {
    title: 'Clocks',
    cases: {
      K1: 'the clock jumps a year ahead',
      K2: 'the clock goes back',
      K3: 'the clock is so wrong that a signed request is refused',
      K4: 'a day of the quota ends, also when the clocks change',
    },
  },
  {
    title: 'The platform',
    cases: {
      P1: 'an object is evicted while a call waits',
      P2: 'the code is replaced in the middle of a request',
      P3: 'old and new code meet the schema of the other',
      P4: 'an instance goes on after another has taken its place',
      P5: 'the object store takes nothing more',
      P6: 'the directory, the object store or a queue is away for an hour',
      P7: 'a mailbox is put back to an earlier time',
      P8: 'the runtime is killed at a random moment, with its state on disk',
    },
  },
];

/** What must hold after every case, whatever happened. */
export const INVARIANTS: Readonly<Record<string, string>> = {
  I1: 'no delivery has a second call to a transport unless the first has proven that it was not accepted; a key never makes two emails',
  I2: 'a send that was accepted is never lost: it ends, or says plainly that its fate is uncertain',
  I3: 'a delivery has one status at a time, and moves only along the table of transitions',
  I4: 'every counter equals a recount of the rows it counts',
  I5: 'the same key and body get the same answer for 30 days; another body under the key is refused and changes nothing',
  I6: 'the bytes handed to a transport are those composed at acceptance, apart from the From of a domain that falls back',
  I7: 'when faults stop, everything comes to rest in bounded time',
  I8: 'the same seed makes the same history',
  I9: 'the events of a mailbox rise by one, and each is handed on at least once under one id',
};

/** Cases without a test, and why. A case that has one must not stand here. */
export const OPEN: Readonly<Record<string, string>> = {
  P2:
    'no test does it. It is not a part that is still to be built: the local runtime cannot replace code under a running ' +
    'request. Shown is what such a replacement is made of: an object that goes away while a call waits (P1), an old ' +
    'instance that goes on beside the new one (P4), and code and storage one schema apart (P3). Not shown is the moment ' +
    'itself, and a Worker of one version that calls an object of another',
};

/** Parts of cases that have tests and are not whole yet. */
export const PARTLY_OPEN: Readonly<Record<string, string>> = {
  C9:
    'the monitor that finds out that a domain has changed is not built yet. What then becomes of its mail is built: it ' +
    'waits, leaves from the platform address, fails or is rejected, tested with a state that was written by hand',
  V11: 'mail from outside is not taken in yet; tested is mail between identities of the service',
};

export const CASE_IDS: readonly string[] = GROUPS.flatMap(({ cases }) => Object.keys(cases));

/**
 * What a run of the kill test holds the service to. Each line names the cases of faults that the kills bring about, and
 * stands in docs/faults.md.
 */
export const KILL_CHECKS: readonly { cases: readonly string[]; title: string }[] = [
  {
    cases: ['P8'],
    title: 'after any number of kills, also during recovery, every accepted send ends, or says that it is uncertain',
  },
  {
    cases: ['S1', 'S6', 'S7'],
    title: 'a key whose answer was lost, or that was asked for twice at once, gets one message and the same answer',
  },
  { cases: ['S8'], title: 'a key with another body is refused after the kills as before them' },
  { cases: ['E1', 'E7'], title: 'what waited in a queue when the runtime died leaves all the same' },
  {
    cases: ['C5', 'T9'],
    title: "what the provider had in hand at a kill is in the provider's own log once, and never again",
  },
  {
    cases: ['O1'],
    title: 'a send whose outcome died with the runtime is uncertain, and a person settles it either way',
  },
];

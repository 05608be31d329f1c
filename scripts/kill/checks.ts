/** What a run brought about, counted; a check that met none of it has shown nothing. */
export interface Exercised {
  /** How often a runtime that lived was killed. */
  kills: number;
  /** Those of them that met it while it came back from one. */
  kills_in_recovery: number;
  /** Keys with a request that had gone out at a kill, and of which their client did not know what had become of it. */
  answers_lost: number;
  /** Keys of which two requests went out at once. */
  asked_twice: number;
  /** Calls that the provider had in hand, unanswered, at a kill. */
  held: number;
  /** Sends that were answered before a kill, and that the provider took only after it. */
  waited: number;
  /** Uncertain sends that a person found in the provider's log, and those that were not there. */
  settled_sent: number;
  settled_not_sent: number;
  /** Keys under which another body was refused with the id of their message both before a kill and after it. */
  conflicts: number;
}

export type Exercise = keyof Exercised;

export interface KillCheck {
  cases: readonly string[];
  title: string;
  /** What must have happened at least once for the title to be shown. */
  needs: readonly Exercise[];
}

/**
 * What a run of the kill test holds the service to. Each line names the cases of faults that the kills bring about, and
 * stands in docs/faults.md.
 */
export const KILL_CHECKS: readonly KillCheck[] = [
  {
    cases: ['P8'],
    title: 'after any number of kills, also during recovery, every accepted send ends, or says that it is uncertain',
    needs: ['kills', 'kills_in_recovery'],
  },
  {
    cases: ['S1', 'S6', 'S7'],
    title: 'a key whose answer was lost, or that was asked for twice at once, gets one message and the same answer',
    needs: ['answers_lost', 'asked_twice'],
  },
  {
    cases: ['S8'],
    title: 'a key with another body is refused after the kills as before them, with the id of its message',
    needs: ['conflicts'],
  },
  {
    cases: ['E1', 'E7'],
    title: 'what waited in a queue when the runtime died leaves all the same',
    needs: ['waited'],
  },
  {
    cases: ['C5', 'T9'],
    title: "what the provider had in hand at a kill is in the provider's own log once, and never again",
    needs: ['held'],
  },
  {
    cases: ['O1'],
    title:
      'a send whose outcome died with the runtime, or never came, is uncertain, and a person settles it either way',
    needs: ['settled_sent', 'settled_not_sent'],
  },
];

/** From so many rounds on, something that never happened is a hole in the load and not an accident. */
export const ROUNDS_FOR_ALL = 10;

export interface Said {
  lines: string[];
  /** What a run of this length should have brought about and has not. */
  missing: Exercise[];
}

/** A line for each check: held only when nothing is wrong and what it speaks of has happened. */
export function sayChecks(total: Exercised, rounds: number, faults: number): Said {
  const lines = KILL_CHECKS.map(({ title, needs }) => {
    const counts = needs.map((name) => `${total[name]} ${name.replaceAll('_', ' ')}`).join(', ');
    const empty = needs.some((name) => total[name] === 0);
    return `${empty ? 'not exercised' : faults === 0 ? 'held' : 'looked at'} (${counts}): ${title}`;
  });
  const needed = new Set(KILL_CHECKS.flatMap(({ needs }) => needs));
  const missing = rounds < ROUNDS_FOR_ALL ? [] : [...needed].filter((name) => total[name] === 0);
  return { lines, missing };
}

export function addUp(rounds: readonly Exercised[]): Exercised {
  const total: Exercised = {
    kills: 0,
    kills_in_recovery: 0,
    answers_lost: 0,
    asked_twice: 0,
    held: 0,
    waited: 0,
    settled_sent: 0,
    settled_not_sent: 0,
    conflicts: 0,
  };
  for (const round of rounds) for (const name of Object.keys(total) as Exercise[]) total[name] += round[name];
  return total;
}

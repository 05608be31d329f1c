import type { Ended } from '../cases/scenario.fixture.ts';
import type { Evidence } from './evidence.ts';

/** What a scenario has left, as the checkers look at it; a test puts into it what a wrong product would have left. */
export function evidenceOf({ stage, intents }: Ended): Evidence {
  return { ...stage, intents, calmAt: stage.universe.now };
}

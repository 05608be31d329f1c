import type { MarkName } from '@pmail/engine/marks.ts';

/**
 * What the Worker does at a mark: nothing. A test in the runtime puts a death in its place. This is a function of a module
 * and no setting, so that no deployment can ask for it, and one for all worlds, so that no second entry to the Worker is
 * needed that could differ from the real one.
 */
export const marks = {
  /** @param _object whose instance came to the mark; null for a consumer */
  reached(_name: MarkName, _object: DurableObjectState | null): void {},
};

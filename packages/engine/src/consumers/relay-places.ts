import type { SendScope } from '../directory/facts.ts';

/** Turns to hold a connection to a relay. An invocation has few connections, and a relay may hang for minutes. */
export interface RelayPlaces {
  /** Waits for a place. `waited` says that others were before, so that what was known may no longer be true. */
  take: () => Promise<{ waited: boolean; give: () => void }>;
}

/** So many places, given to those who asked first. */
export class Places implements RelayPlaces {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async take(): Promise<{ waited: boolean; give: () => void }> {
    const waited = this.#free === 0;
    if (waited) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    } else this.#free--;
    let given = false;
    const give = (): void => {
      if (given) return;
      given = true;
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    };
    return { waited, give };
  }
}

/** Whether a send of this identity may leave by a relay. Which address it leaves from only the mailbox knows. */
export function mayUseRelay({ tenant, addresses }: Pick<SendScope, 'tenant' | 'addresses'>): boolean {
  return tenant.mode === 'live' && addresses.some(({ domain }) => domain.transport === 'smtp');
}

import { ApiError, ConnectionError } from '@pmail/client/client.ts';

const ATTEMPTS = 20;
const WAIT_MS = 250;

/**
 * Repeats what the client itself does not, because it carries no key, until it has an answer. For calls that may be made
 * twice: those that say how something shall be, or that name what they make.
 */
export async function persist<T>(work: () => Promise<T>, waitMs = WAIT_MS): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= ATTEMPTS || !saysAgain(error)) throw error;
      await new Promise((resolve) => {
        setTimeout(resolve, waitMs);
      });
    }
  }
}

/** Whether an error leaves open what happened, or says that a repeat may help. */
export const saysAgain = (error: unknown): boolean =>
  error instanceof ConnectionError || (error instanceof ApiError && error.retryable);

/** A call took longer than it was given; what became of it nobody knows. */
export class DeadlineOver extends Error {
  override name = 'DeadlineOver';
}

/**
 * Runs work that must end by a deadline. When it does not, the work is told to stop and the wait ends at once, whether the
 * work listens or not.
 */
export async function byDeadline<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new DeadlineOver(`no answer in ${ms} ms`));
      controller.abort();
    }, ms);
  });
  try {
    return await Promise.race([work(controller.signal), over]);
  } finally {
    clearTimeout(timer);
  }
}

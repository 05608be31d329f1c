/** A call that took longer than it may. Whether it had an effect is not known. */
export class DeadlineExceeded extends Error {
  override name = 'DeadlineExceeded';
  readonly step: string;

  constructor(step: string) {
    super(`${step} took too long`);
    this.step = step;
  }
}

/** Waits for a call at most `ms` milliseconds; the call itself may go on. */
export async function within<T>(ms: number, step: string, call: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new DeadlineExceeded(step)), ms);
  });
  try {
    return await Promise.race([call, late]);
  } finally {
    clearTimeout(timer);
  }
}

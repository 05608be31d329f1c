import type { Disposition } from '@pmail/engine/consumers/world.ts';
import { FAULT_RETRY_MS } from '@pmail/engine/consumers/world.ts';
import type { Log } from '@pmail/engine/ports.ts';
import { errorPlace } from '../log.ts';

/**
 * How long a queue waits after a fault, where not as long as the others. What is said here goes before the `retry_delay` of
 * wrangler.toml, which is for a batch that could say nothing any more; both say the same.
 */
const FAULT_RETRY_S: Record<string, number> = { 'pm-inbound': 120 };

/** After a fault that nobody foresaw the message comes again, later. */
export function retryAfterFault(queue: string, message: Pick<Message, 'retry'>): void {
  message.retry({ delaySeconds: FAULT_RETRY_S[queue] ?? FAULT_RETRY_MS / 1_000 });
}

/**
 * Runs a batch one message at a time, acknowledging each after its own effect, so that a batch that dies after its
 * third message gives back only the rest. A job that has long to wait may let the next begin meanwhile; the batch ends
 * with its last job. A throw is a fault that nobody foresaw: the queue delivers again later.
 */
export async function runBatch<T>(
  batch: Pick<MessageBatch<T>, 'queue' | 'messages'>,
  log: Log,
  run: (job: T, letNext: () => void) => Promise<Disposition>,
): Promise<void> {
  const running: Promise<void>[] = [];
  for (const message of batch.messages) {
    await new Promise<void>((letNext) => {
      running.push(runOne(batch.queue, message, log, run, letNext).finally(letNext));
    });
  }
  await Promise.all(running);
}

async function runOne<T>(
  queue: string,
  message: Message<T>,
  log: Log,
  run: (job: T, letNext: () => void) => Promise<Disposition>,
  letNext: () => void,
): Promise<void> {
  try {
    const disposition = await run(message.body, letNext);
    if (disposition.kind === 'ack') message.ack();
    else message.retry({ delaySeconds: Math.ceil(disposition.delay_ms / 1_000) });
  } catch (error) {
    log('error', 'job_failed', { queue, attempts: message.attempts, error: errorPlace(error) });
    retryAfterFault(queue, message);
  }
}

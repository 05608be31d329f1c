import type { Json } from '@pmail/core/canonical-json.ts';
import type { ErrorCode } from '@pmail/core/errors.ts';
import { ERRORS } from '@pmail/core/errors.ts';
import { sha256Hex } from '@pmail/core/hash.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { type SendBody, type SendOperation, sendFingerprint } from '@pmail/core/message/request.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { type FactsQuery, factsStatements, parseFacts } from '@pmail/engine/directory/facts.ts';
import type { DirectoryNeeded, SubmitAnswer, SubmitRequest } from '@pmail/engine/mailbox/submit-types.ts';
import type { Deployment } from './deployment.ts';
import type { SimIdentity } from './population.ts';
import { NetworkLost, Process } from './process.ts';
import { FACTS, THREAD_KEY } from './settings.ts';

/** One send that a client wants done, under one key. It goes on until it has an answer that ends the matter. */
export interface Intent {
  key: string;
  identity: SimIdentity;
  operation: SendOperation;
  /** The message that is answered or forwarded. */
  target_id: MessageId | null;
  body: SendBody;
  /** Every answer ever given for this key and body, in order. */
  answers: MessageResource[];
  /** When each of them was heard, by the scheduler's time. */
  answered_at: number[];
  /** Set when the client was told that the request itself is refused, and when that was. */
  refused: ErrorCode | null;
  refused_at: number | null;
  /** When the directory was read for it, each time that it was tried, by the scheduler's time. */
  reads: number[];
  /** Requests with another body under the same key. */
  conflicts: Conflict[];
}

export interface Conflict {
  begun_at: number;
  /** Null as long as there is no answer. */
  at: number | null;
  ok: boolean;
  id: MessageId | null;
  code: ErrorCode | 'timeout' | null;
}

/** What a request ends with: an answer, or nothing (the connection died). */
export type Reply = Exclude<SubmitAnswer, DirectoryNeeded> | { ok: false; code: 'timeout' };

/** The HTTP handler for a send, as the Worker runs it: directory first, then the mailbox. */
async function handle(deployment: Deployment, process: Process, intent: Intent, body: SendBody): Promise<Reply> {
  const { identity, operation, target_id } = intent;
  let addresses = [...(body.to ?? []), ...(body.cc ?? []), ...(body.bcc ?? [])].map((entry) =>
    typeof entry === 'string' ? entry : entry.address,
  );
  const about = target_id === null ? identity.identity_id : `${identity.identity_id}/${target_id}`;
  const keyHash = await sha256Hex(intent.key);
  const fingerprint = await sendFingerprint(operation, about, body as unknown as Json);
  for (let round = 0; round < 3; round++) {
    const recipients = await Promise.all(
      addresses.map(async (address) => ({ address, hash: await deployment.hashAddress(address) })),
    );
    const query: FactsQuery = { identity_id: identity.identity_id, recipients, now: deployment.universe.now };
    const rows = await within(deployment, deployment.dbFor(process).batch(factsStatements(query)));
    const directory = parseFacts(query, rows, FACTS);
    if (directory === undefined) return { ok: false, code: 'identity_not_found' };
    const request: SubmitRequest = {
      operation,
      target_id,
      key_hash: keyHash,
      fingerprint,
      body,
      directory,
      keys: { thread: THREAD_KEY, link: null },
      api_origin: 'https://api.agents.example',
      can_review_quarantine: false,
      last_sequence: directory.last_sequence,
      request_id: 'req_sim',
    };
    intent.reads.push(process.readAt ?? 0);
    const answer = await deployment.remote(process, identity.identity_id).submit(request, `submit ${intent.key}`);
    if (answer.ok || answer.code !== 'directory_needed') return answer;
    addresses = answer.recipients;
  }
  return { ok: false, code: 'unavailable' };
}

/** The handler waits for the directory only so long. */
function within<T>({ universe }: Deployment, read: Promise<T>): Promise<T> {
  const late = new Promise<never>((_resolve, reject) => {
    universe.scheduler.after(LIMITS.directory_deadline_ms, () => reject(new NetworkLost('directory')));
  });
  return Promise.race([read, late]);
}

/** An intent to send that nothing has come of yet. */
export function intend(key: string, identity: SimIdentity, body: SendBody): Intent {
  return {
    key,
    identity,
    operation: 'send',
    target_id: null,
    body,
    answers: [],
    answered_at: [],
    refused: null,
    refused_at: null,
    reads: [],
    conflicts: [],
  };
}

/** One request of a client: 30 s, then it hears nothing more. */
export async function request(deployment: Deployment, intent: Intent, body: SendBody): Promise<Reply> {
  const process = new Process(`request ${intent.key}`);
  const late = new Promise<Reply>((resolve) => {
    deployment.universe.scheduler.after(LIMITS.submit_deadline_ms, () => resolve({ ok: false, code: 'timeout' }));
  });
  try {
    return await Promise.race([handle(deployment, process, intent, body), late]);
  } catch (error) {
    deployment.watcher.threw(process.name, error);
    return { ok: false, code: 'timeout' };
  }
}

function isRetryable(code: ErrorCode): boolean {
  return ERRORS[code].retryable;
}

/** Repeats a send with its key until it is accepted or refused for good. */
export async function pursue(deployment: Deployment, intent: Intent, attempts: number): Promise<void> {
  const client = new Process(`client ${intent.key}`);
  for (let attempt = 0; attempt < attempts; attempt++) {
    const reply = await request(deployment, intent, intent.body);
    if (reply.ok) {
      hear(deployment, intent, reply.message);
      deployment.universe.log(
        `client: ${intent.key} accepted as ${reply.message.id}${reply.deduplicated ? ' (again)' : ''}`,
      );
      return;
    }
    deployment.universe.log(`client: ${intent.key} got ${reply.code}`);
    if (!isRetryable(reply.code) || reply.code === 'daily_cap_reached') {
      intent.refused = reply.code;
      intent.refused_at = deployment.universe.scheduler.now;
      return;
    }
    // Longer and longer, as a client waits that does not want to add to the trouble.
    const patience = Math.min(1 + attempt / 10, 6);
    await deployment.universe.sleep(client, Math.round(deployment.universe.between(500, 20_000) * patience));
  }
}

/** The client has its answer. */
export function hear({ universe }: Deployment, intent: Intent, message: MessageResource): void {
  intent.answers.push(message);
  intent.answered_at.push(universe.scheduler.now);
}

export function messageOf(intent: Intent): MessageId | undefined {
  return intent.answers[0]?.id;
}

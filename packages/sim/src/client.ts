import type { Json } from '@pmail/core/canonical-json.ts';
import type { ErrorCode } from '@pmail/core/errors.ts';
import { ERRORS } from '@pmail/core/errors.ts';
import { sha256Hex } from '@pmail/core/hash.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { type SendBody, sendFingerprint } from '@pmail/core/message/request.ts';
import type { MessageResource } from '@pmail/core/message/resource.ts';
import { type FactsQuery, factsStatements, parseFacts } from '@pmail/engine/directory/facts.ts';
import type { SubmitAnswer } from '@pmail/engine/mailbox/submit-types.ts';
import type { Deployment } from './deployment.ts';
import type { SimIdentity } from './population.ts';
import { Process } from './process.ts';

/** One send that a client wants done, under one key. It goes on until it has an answer that ends the matter. */
export interface Intent {
  key: string;
  identity: SimIdentity;
  body: SendBody;
  /** Every answer ever given for this key and body, in order. */
  answers: MessageResource[];
  /** Set when the client was told that the request itself is refused. */
  refused: ErrorCode | null;
  /** Answers to another body under the same key. */
  conflicts: { accepted: boolean; code: ErrorCode | null }[];
}

/** What a request ends with: an answer, or nothing (the connection died). */
export type Reply = SubmitAnswer | { ok: false; code: 'timeout' };

/** The HTTP handler for a send, as the Worker runs it: directory first, then the mailbox. */
async function handle(deployment: Deployment, process: Process, intent: Intent, body: SendBody): Promise<SubmitAnswer> {
  const { identity } = intent;
  const addresses = [...(body.to ?? []), ...(body.cc ?? []), ...(body.bcc ?? [])].map((entry) =>
    typeof entry === 'string' ? entry : entry.address,
  );
  const recipients = await Promise.all(
    addresses.map(async (address) => ({ address, hash: await deployment.hashAddress(address) })),
  );
  const query: FactsQuery = { identity_id: identity.identity_id, recipients, now: deployment.universe.now };
  const rows = await deployment.dbFor(process).batch(factsStatements(query));
  const directory = parseFacts(query, rows, deployment.facts());
  if (directory === undefined) return { ok: false, code: 'identity_not_found' };
  const keyHash = await sha256Hex(intent.key);
  const fingerprint = await sendFingerprint('send', identity.identity_id, body as unknown as Json);
  return deployment.remote(process, identity.identity_id).engine(
    (engine) =>
      engine.submit({
        operation: 'send',
        target_id: null,
        key_hash: keyHash,
        fingerprint,
        body,
        directory,
        can_review_quarantine: false,
        request_id: 'req_sim',
      }),
    `submit ${intent.key}`,
  );
}

/** One request of a client: 30 s, then it hears nothing more. */
export async function request(deployment: Deployment, intent: Intent, body: SendBody): Promise<Reply> {
  const process = new Process(`request ${intent.key}`);
  const late = new Promise<Reply>((resolve) => {
    deployment.universe.scheduler.after(30_000, () => resolve({ ok: false, code: 'timeout' }));
  });
  try {
    return await Promise.race([handle(deployment, process, intent, body), late]);
  } catch {
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
      intent.answers.push(reply.message);
      deployment.universe.log(
        `client: ${intent.key} accepted as ${reply.message.id}${reply.deduplicated ? ' (again)' : ''}`,
      );
      return;
    }
    deployment.universe.log(`client: ${intent.key} got ${reply.code}`);
    if (!isRetryable(reply.code) || reply.code === 'daily_cap_reached') {
      intent.refused = reply.code;
      return;
    }
    await deployment.universe.sleep(client, deployment.universe.between(500, 20_000));
  }
}

export function messageOf(intent: Intent): MessageId | undefined {
  return intent.answers[0]?.id;
}

import { parseAddress } from '@pmail/core/address/address.ts';
import type { IdentityId } from '@pmail/core/ids.ts';
import type { RecipientInput, SendBody } from '@pmail/core/message/request.ts';
import type { Result } from '@pmail/core/result.ts';
import { type FactsQuery, factsStatements, parseFacts, type SendScope } from '@pmail/engine/directory/facts.ts';
import type { SqlValue, Statement } from '@pmail/engine/sql.ts';
import type { Config } from '../env.ts';
import { hashAddress } from '../ports/secrets.ts';

export interface SendFacts {
  statements: Statement[];
  parse: (rows: Record<string, SqlValue>[][]) => SendScope | undefined;
}

/** What the directory must be asked for a send. Addresses that are not valid are left to the policy to refuse. */
export async function sendFacts(
  config: Config,
  identityId: string,
  body: Result<unknown>,
  now: number,
): Promise<SendFacts> {
  const { to = [], cc = [], bcc = [] } = body.ok ? (body.value as SendBody) : {};
  const addresses = new Set([...to, ...cc, ...bcc].flatMap(addressOf));
  const recipients = await Promise.all(
    [...addresses].map(async (address) => ({ address, hash: await hashAddress(config.hash_key, address) })),
  );
  const query: FactsQuery = { identity_id: identityId as IdentityId, recipients, now };
  return { statements: factsStatements(query), parse: (rows) => parseFacts(query, rows, config.deployment) };
}

function addressOf(input: RecipientInput): string[] {
  const parsed = parseAddress(typeof input === 'string' ? input : input.address);
  return parsed.ok ? [parsed.address] : [];
}

import { type Address, parseAddress } from '@pmail/core/address/address.ts';
import type { IdentityId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { RecipientInput, SendBody } from '@pmail/core/message/request.ts';
import type { Result } from '@pmail/core/result.ts';
import {
  type FactsQuery,
  factsStatements,
  parseFacts,
  parseRecipients,
  recipientStatements,
  type SendScope,
} from '@pmail/engine/directory/facts.ts';
import type { SqlValue, Statement } from '@pmail/engine/sql.ts';
import type { Config } from '../env.ts';
import { hashAddress } from '../ports/secrets.ts';
import type { RequestContext } from './context.ts';
import { within } from './deadline.ts';

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
  const query = await queryOf(config, identityId, [...addresses], now);
  return { statements: factsStatements(query), parse: (rows) => parseFacts(query, rows, config.deployment) };
}

/** The facts with what the directory says of these recipients in place of any others. */
export async function withRecipients(
  { config, db, now, facts }: Pick<RequestContext, 'config' | 'db' | 'now' | 'facts'>,
  recipients: Address[],
): Promise<SendScope> {
  const query = await queryOf(config, facts.identity.id, recipients, now);
  const rows = await within(LIMITS.directory_deadline_ms, 'directory', db.batch(recipientStatements(query)));
  return { ...facts, ...parseRecipients(query, rows) };
}

async function queryOf(config: Config, identityId: string, addresses: Address[], now: number): Promise<FactsQuery> {
  const recipients = await Promise.all(
    addresses.map(async (address) => ({ address, hash: await hashAddress(config.hash_key, address) })),
  );
  return { identity_id: identityId as IdentityId, recipients, now };
}

function addressOf(input: RecipientInput): string[] {
  const parsed = parseAddress(typeof input === 'string' ? input : input.address);
  return parsed.ok ? [parsed.address] : [];
}

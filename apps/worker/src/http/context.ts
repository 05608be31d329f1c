import type { KeyLevel, Permission } from '@pmail/contracts/permissions.ts';
import type { ErrorCode } from '@pmail/core/errors.ts';
import type { IdentityId, KeyId, RequestId, TenantId } from '@pmail/core/ids.ts';
import { type Refusal, refuse } from '@pmail/core/result.ts';
import type { SendScope } from '@pmail/engine/directory/facts.ts';
import type { RecordKey } from '@pmail/engine/directory/idempotency.ts';
import type { IdentityRef, TenantRef } from '@pmail/engine/directory/owners.ts';
import type { Log } from '@pmail/engine/ports.ts';
import type { Db } from '@pmail/engine/sql.ts';
import type { Config, Env } from '../env.ts';
import { type CallContext, NotMadeYet } from '../objects/calls.ts';
import type { IdentityMailbox } from '../objects/mailbox.ts';
import type { TenantQuota } from '../objects/quota.ts';
import { mailboxStub, quotaStub, type Remote } from '../objects/remote.ts';

/** The key of a request, after it has proved itself. */
export interface AuthKey {
  id: KeyId;
  name: string;
  level: KeyLevel;
  mode: 'live' | 'test';
  tenant_id: TenantId | null;
  identity_id: IdentityId | null;
  permissions: Permission[];
  expires_at: number | null;
}

/** What every handler gets. `identity` and `tenant` are those of the path, within the key's reach. */
export interface RequestContext {
  env: Env;
  config: Config;
  db: Db;
  requestId: RequestId;
  now: number;
  log: Log;
  /** Lets work go on after the answer. */
  background: (work: Promise<unknown>) => void;
  key: AuthKey;
  identity: IdentityRef;
  tenant: TenantRef;
  /** Facts for a send, read in the same batch as the key. */
  facts: SendScope;
  headers: Headers;
  /** The body as text, for routes that read it themselves; undefined when it is over `max` bytes or no UTF-8. */
  readText: (max: number) => Promise<string | undefined>;
  /** Path as requested, without the query. */
  path: string;
  search: URLSearchParams;
  /** The body as parsed from JSON, before any check; fingerprints are made over it. */
  rawBody: unknown;
  /** The turn at an Idempotency-Key, for a write that runs under one and may be finished by a repeat. */
  turn?: { record: RecordKey; began: number; made: IdentityId | null };
}

export function mailboxOf(context: RequestContext, identity: IdentityRef): Remote<IdentityMailbox> {
  // Of a row that the setup wrote; the cron makes it within a minute.
  if (identity.mailbox_do_id === '') throw new NotMadeYet('mailbox');
  return mailboxStub(context.env, identity.mailbox_do_id);
}

export function mailboxCall(context: RequestContext, identity: IdentityRef): CallContext {
  return { v: 1, tenant_id: identity.tenant_id, identity_id: identity.id, request_id: context.requestId };
}

export function quotaOf(context: RequestContext, tenant: TenantRef): Remote<TenantQuota> {
  return quotaStub(context.env, tenant.quota_do_id);
}

export function tenantCall(context: RequestContext, tenant: Pick<TenantRef, 'id'>): CallContext {
  return { v: 1, tenant_id: tenant.id, identity_id: null, request_id: context.requestId };
}

/** Whether the key reaches an identity. The system identity exists for platform keys alone. */
export function reachesIdentity(key: AuthKey, identity: Pick<IdentityRef, 'id' | 'tenant_id' | 'is_system'>): boolean {
  if (key.level === 'platform') return true;
  if (identity.is_system === 1 || key.tenant_id !== identity.tenant_id) return false;
  return key.level === 'tenant' || key.identity_id === identity.id;
}

export function reachesTenant(key: AuthKey, tenantId: TenantId): boolean {
  return key.level === 'platform' || key.tenant_id === tenantId;
}

/** Whether the key may see held mail. */
export function canReview({ key }: RequestContext): boolean {
  return key.permissions.includes('quarantine:review');
}

/** Somebody else's thing answers exactly like a missing one. */
export function missing(code: Extract<ErrorCode, `${string}_not_found`>): Refusal {
  return refuse(code);
}

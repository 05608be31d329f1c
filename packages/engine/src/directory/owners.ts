import type { IdentityId, TenantId } from '@pmail/core/ids.ts';
import { type SqlValue, type Statement, statement } from '../sql.ts';

/** The owner of what a path names, read before anything else is looked at. */

export interface IdentityRef {
  id: IdentityId;
  tenant_id: TenantId;
  status: 'active' | 'paused' | 'deleting' | 'deleted';
  mailbox_do_id: string;
  is_system: number;
}

export interface TenantRef {
  id: TenantId;
  status: 'active' | 'suspended' | 'erasing' | 'erased';
  mode: 'live' | 'test';
  quota_do_id: string;
}

export function identityStatement(id: string): Statement {
  return statement('SELECT id, tenant_id, status, mailbox_do_id, is_system FROM identities WHERE id = ?', id);
}

export function tenantStatement(id: string): Statement {
  return statement('SELECT id, status, mode, quota_do_id FROM tenants WHERE id = ?', id);
}

export function firstRow<T>(rows: Record<string, SqlValue>[] | undefined): T | undefined {
  return rows?.[0] as T | undefined;
}

import { addressHint } from '@pmail/core/address/address.ts';
import type { IdentityId, TenantId } from '@pmail/core/ids.ts';
import type { DomainState } from '@pmail/core/policy/types.ts';
import { suppress } from '@pmail/engine/directory/suppressions.ts';
import { changeTenant, findTenant } from '@pmail/engine/directory/tenants.ts';
import { type Db, statement } from '@pmail/engine/sql.ts';
import type { Universe } from './universe.ts';

/** A time during which nobody may send from somewhere; `until` is open while it lasts. */
export interface Ban {
  /** An identity, a tenant or the name of a domain. */
  subject: string;
  what: string;
  from: number;
  until: number;
}

export interface Suppressed {
  tenant_id: TenantId;
  address: string;
  at: number;
}

/**
 * Who may send, as people and checks of domains change it in the directory, and the memory of it by which a checker
 * judges what was sent meanwhile. Times are the scheduler's.
 */
export class Standing {
  readonly bans: Ban[] = [];
  readonly suppressed: Suppressed[] = [];
  readonly #universe: Universe;
  readonly #db: Db;

  constructor(universe: Universe, db: Db) {
    this.#universe = universe;
    this.#db = db;
  }

  async pause(identity: IdentityId): Promise<void> {
    await this.#setIdentity(identity, 'paused', 'manual');
    this.#begin(identity, 'paused');
  }

  async unpause(identity: IdentityId): Promise<void> {
    await this.#setIdentity(identity, 'active', null);
    this.#end(identity);
  }

  async #setIdentity(identity: IdentityId, status: string, reason: string | null): Promise<void> {
    await this.#db.batch([
      statement('UPDATE identities SET status = ?, pause_reason = ? WHERE id = ?', status, reason, identity),
    ]);
  }

  async suspend(tenant: TenantId): Promise<void> {
    await this.#setTenant(tenant, 'suspended');
    this.#begin(tenant, 'suspended');
  }

  async unsuspend(tenant: TenantId): Promise<void> {
    await this.#setTenant(tenant, 'active');
    this.#end(tenant);
  }

  async #setTenant(tenant: TenantId, status: 'active' | 'suspended'): Promise<void> {
    const seen = await findTenant(this.#db, tenant);
    if (seen === undefined) throw new Error(`no tenant ${tenant}`);
    const next = { ...seen, status, updated_at: Math.max(this.#universe.now, seen.updated_at + 1) };
    if ((await changeTenant(this.#db, { seen, next, audits: [], event: null })) === undefined) {
      throw new Error('somebody else changed the tenant, and there is nobody else');
    }
  }

  async setDomain(name: string, state: DomainState): Promise<void> {
    await this.#db.batch([statement('UPDATE domains SET state = ? WHERE name = ?', state, name)]);
    this.#end(name);
    if (state !== 'healthy' && state !== 'degraded') this.#begin(name, state);
  }

  async suppress(tenant: TenantId, address: string, hash: string): Promise<void> {
    await suppress(this.#db, {
      tenant_id: tenant,
      address_hash: hash,
      address_hint: addressHint(address),
      reason: 'manual',
      source_message_id: null,
      note: null,
      created_at: this.#universe.now,
    });
    this.#universe.log(`suppressed: ${address}`);
    this.suppressed.push({ tenant_id: tenant, address, at: this.#universe.scheduler.now });
  }

  #begin(subject: string, what: string): void {
    this.#universe.log(`${what}: ${subject}`);
    this.bans.push({ subject, what, from: this.#universe.scheduler.now, until: Number.POSITIVE_INFINITY });
  }

  #end(subject: string): void {
    for (const ban of this.bans) {
      if (ban.subject !== subject || ban.until !== Number.POSITIVE_INFINITY) continue;
      ban.until = this.#universe.scheduler.now;
      this.#universe.log(`no longer ${ban.what}: ${subject}`);
    }
  }
}

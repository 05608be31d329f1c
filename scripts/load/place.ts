import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiError, PmailClient } from '@pmail/client/client.ts';
import type { SendBody } from '@pmail/core/message/request.ts';
import { ROOT } from '@pmail/testkit/runtime/build.ts';
import type { Runtime } from '@pmail/testkit/runtime/runtime.ts';

/** Waits of the send path, shortened so that a person can watch what takes minutes in production. */
export const SHORT_WAITS = {
  claim_ttl_ms: 4_000,
  dispatch_after_ms: 2_000,
  outbox_backoff_ms_min: 500,
  outbox_backoff_ms_max: 2_000,
  quota_task_retry_ms: 1_000,
  followup_retry_ms: 2_000,
  hold_ttl_ms: 20_000,
  webhook_wait_ms_max: 1_000,
  webhook_lease_ms: 16_000,
  webhook_sweep_after_ms: 2_000,
};

/** Who takes part: a test tenant with three identities. */
export interface Place {
  client: PmailClient;
  /** Secret of the tenant key that the client uses. */
  key: string;
  tenant: string;
  sender: Participant;
  desk: Participant;
  garage: Participant;
}

export interface Participant {
  id: string;
  address: string;
}

/** Who may do everything in a runtime. */
export function platformOf({ url, secrets }: Runtime, send: typeof fetch = fetch): PmailClient {
  return new PmailClient({ url, key: secrets.platform_key, retries: 5, fetch: send });
}

/** Finds or makes the tenant `demo` and its identities, so that a later run goes on in the same mailboxes. */
export async function prepare(runtime: Runtime, send: typeof fetch = fetch): Promise<Place> {
  const platform = platformOf(runtime, send);
  const tenant = await findOrCreateTenant(platform);
  await platform.call('tenants.policy.update', {
    params: { tenant_id: tenant.id },
    body: { policy: { max_recipients: 49 } },
  });
  const sender = await identity(platform, tenant.id, 'bookings', 'Acme Bookings');
  const desk = await identity(platform, tenant.id, 'desk', 'Acme Front Desk');
  const garage = await identity(platform, tenant.id, 'garage', 'Acme Garage');
  await endOldKeys(platform, tenant.id);
  const key = await platform.call('keys.create', {
    body: {
      name: `${RUN_KEY}${randomBytes(3).toString('hex')}`,
      level: 'tenant',
      tenant_id: tenant.id,
      permissions: [
        'messages:send',
        'messages:read',
        'messages:write',
        'identities:read',
        'identities:write',
        'suppressions:manage',
        'webhooks:manage',
        'quarantine:review',
        'attachments:read',
      ],
    },
  });
  const { secret } = key.body as { secret: string };
  const client = new PmailClient({ url: runtime.url, key: secret, retries: 8, fetch: send });
  return { client, key: secret, tenant: tenant.id, sender, desk, garage };
}

const RUN_KEY = 'run ';
const RUN_KEYS_KEPT = 20;

/** Every run makes a key, and a tenant may have a hundred. Those of the last runs may still be in somebody's shell. */
async function endOldKeys(platform: PmailClient, tenant: string): Promise<void> {
  const { body } = await platform.call('keys.list', { query: { limit: 100 } });
  const { data } = body as { data: { id: string; name: string; tenant_id: string; revoked_at: string | null }[] };
  const ofRuns = data.filter(({ name, tenant_id, revoked_at }) => {
    return name.startsWith(RUN_KEY) && tenant_id === tenant && revoked_at === null;
  });
  for (const { id } of ofRuns.slice(RUN_KEYS_KEPT - 1)) await platform.call('keys.revoke', { params: { key_id: id } });
}

async function findOrCreateTenant(platform: PmailClient): Promise<{ id: string; address_suffix: string }> {
  const { body } = await platform.call('tenants.list', { query: { limit: 100 } });
  const found = (body as { data: { id: string; slug: string; address_suffix: string }[] }).data.find(
    ({ slug }) => slug === 'demo',
  );
  if (found !== undefined) return found;
  const created = await platform.call('tenants.create', { body: { slug: 'demo', name: 'Demo', mode: 'test' } });
  return created.body;
}

/** Repeating the request with its client id gives the identity that exists. */
async function identity(platform: PmailClient, tenant: string, username: string, name: string): Promise<Participant> {
  const { body } = await platform.call('identities.create', {
    params: { tenant_id: tenant },
    body: {
      username,
      display_name: name,
      client_id: `demo-${username}`,
      owner: { name: 'Demo Owner', email: 'owner@example.com' },
      signature: { text: `${name}\nagents.example` },
    },
  });
  const { id, primary_address: address } = body as { id: string; primary_address: string };
  return { id, address };
}

/** The bodies under examples/, by file name. */
export async function examples(): Promise<Map<string, SendBody>> {
  const folder = join(ROOT, 'examples');
  const bodies = new Map<string, SendBody>();
  for (const name of (await readdir(folder)).sort()) {
    if (!name.endsWith('.json')) continue;
    bodies.set(name.replace('.json', ''), JSON.parse(await readFile(join(folder, name), 'utf8')) as SendBody);
  }
  return bodies;
}

/**
 * The body for this run: recipients at the simulator get a tag of the run, because one that has bounced or complained
 * before is suppressed for good.
 */
export function forRun(body: SendBody, run: string): SendBody {
  const tagged = (address: string): string =>
    address.replace(/^([a-z]+)(\+[a-z0-9]+)?@simulator\.invalid$/, `$1$2+${run}@simulator.invalid`);
  const out: SendBody = { ...body };
  for (const field of ['to', 'cc', 'bcc'] as const) {
    const list = body[field];
    if (list !== undefined)
      out[field] = list.map((entry) =>
        typeof entry === 'string' ? tagged(entry) : { ...entry, address: tagged(entry.address) },
      );
  }
  return out;
}

export function codeOf(error: unknown): string {
  return error instanceof ApiError ? error.code : 'no answer';
}

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { PmailClient } from '@pmail/client/client.ts';
import { buildWorker, ROOT } from '@pmail/testkit/runtime/build.ts';
import { Runtime } from '@pmail/testkit/runtime/runtime.ts';

/** The service for a benchmark: a fresh state, limits out of the way, a tenant with as many identities as wanted. */
export interface BenchService {
  runtime: Runtime;
  /** Straight into the Worker, without the development server in between. */
  direct: string;
  key: string;
  identities: { id: string; address: string }[];
  stop: () => Promise<void>;
}

export async function startService(
  name: string,
  identities: number,
  { bare = false, consume = true }: { bare?: boolean; consume?: boolean } = {},
): Promise<BenchService> {
  const state = join(ROOT, '.state', `bench-${name}`);
  await rm(state, { recursive: true, force: true });
  const runtime = await Runtime.start({
    state,
    limits: false,
    cron_ms: 3_600_000,
    direct: true,
    consume,
    ...(bare ? { bare: await buildWorker('bench/bare/wrangler.toml') } : {}),
  });
  const platform = new PmailClient({ url: runtime.url, key: runtime.secrets.platform_key });
  const tenant = (await platform.call('tenants.create', { body: { slug: 'demo', name: 'Bench', mode: 'test' } }))
    .body as {
    id: string;
  };
  await platform.call('tenants.policy.update', {
    params: { tenant_id: tenant.id },
    body: { policy: { identity_daily_send_cap: 10_000_000, tenant_daily_send_cap: 10_000_000, max_recipients: 49 } },
  });
  const list: BenchService['identities'] = [];
  for (let i = 0; i < identities; i++) {
    const { body } = await platform.call('identities.create', {
      params: { tenant_id: tenant.id },
      body: { username: `bench${i}`, display_name: `Bench ${i}`, owner: { name: 'Owner', email: 'owner@example.com' } },
    });
    const { id, primary_address: address } = body as { id: string; primary_address: string };
    list.push({ id, address });
  }
  const made = await platform.call('keys.create', {
    body: {
      name: 'bench',
      level: 'tenant',
      tenant_id: tenant.id,
      permissions: ['messages:send', 'messages:read', 'webhooks:read'],
    },
  });
  const { secret } = made.body as { secret: string };
  return { runtime, direct: runtime.direct, key: secret, identities: list, stop: () => runtime.stop() };
}

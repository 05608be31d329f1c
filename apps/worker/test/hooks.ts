import type { EventEnvelope } from '@pmail/core/events/types.ts';
import { utf8 } from '@pmail/core/hash.ts';
import { signWebhook } from '@pmail/core/webhooks/signature.ts';
import { expect, vi } from 'vitest';
import { atRest, type Lab, makeLab, until } from './mail.ts';
import { Net, type Posted } from './net.ts';
import { call, deploy, sql } from './support.ts';

/** A tenant whose endpoints a test makes, and what came to them. */
export class HookLab {
  readonly root: string;
  readonly lab: Lab;
  net = new Net();
  #made = 0;

  private constructor(root: string, lab: Lab) {
    this.root = root;
    this.lab = lab;
  }

  static async make(): Promise<HookLab> {
    const root = await deploy();
    const lab = await makeLab(root);
    await atRest(lab.ann, lab.bob);
    return new HookLab(root, lab);
  }

  /** Before each test: a network of its own. */
  begin(): void {
    this.net = new Net().install();
  }

  /** After each: no endpoints of the test before. */
  async end(): Promise<void> {
    vi.restoreAllMocks();
    await sql('DELETE FROM webhook_endpoints');
  }

  async hook(events: string[], body: object = {}, tenant: string | null = this.lab.tenant) {
    const url = `https://hooks.acme.com/${++this.#made}`;
    const full = { url, events, ...body };
    return tenant === null
      ? call(this.root, 'webhooks.create', { body: full })
      : call(this.root, 'webhooks.createOfTenant', { params: { tenant_id: tenant }, body: full });
  }

  at({ url }: Hook): Posted[] {
    return this.net.posted.filter((posted) => posted.url === url);
  }

  events(hooked: Hook): EventEnvelope[] {
    return this.at(hooked).map(({ body }) => JSON.parse(body) as EventEnvelope);
  }

  async attempts({ id }: Hook, query: Record<string, string> = {}) {
    return (await call(this.root, 'webhooks.deliveries.list', { params: { webhook_id: id }, query })).data;
  }

  /** Waits until so many attempts at an endpoint were made. */
  comes(hooked: Hook, count: number) {
    return until(async () => {
      const list = await this.attempts(hooked);
      expect(list).toHaveLength(count);
      return list;
    });
  }

  /** Suppresses somebody new, which the tenant is told of. */
  async something(): Promise<string> {
    const address = `${crypto.randomUUID()}@example.net`;
    const params = { tenant_id: this.lab.tenant };
    await call(this.lab.key, 'suppressions.create', { params, body: { address, reason: 'manual' } });
    return address;
  }
}

export type Hook = Awaited<ReturnType<HookLab['hook']>>;

/** The signature that these secrets give what was posted. */
export async function signatureOf(posted: Posted | undefined, secrets: string[]): Promise<string> {
  const header = (name: string): string => posted?.headers.get(name) ?? '';
  const stamp = Number(header('webhook-timestamp')) * 1_000;
  expect(Math.abs(Date.now() - stamp)).toBeLessThan(60_000);
  return (await signWebhook(secrets, header('webhook-id'), stamp, utf8(posted?.body ?? '')))['webhook-signature'];
}

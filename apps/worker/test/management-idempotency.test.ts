import { beforeEach, describe, expect, it } from 'vitest';
import { call, deploy, refusal, send, sql, statuses } from './support.ts';

/** Idempotency-Key on the writes that are not sends: one record per API key, kept in the directory. */

let key = '';

beforeEach(async () => {
  key = await deploy();
});

const body = { slug: 'acme', name: 'Acme', mode: 'test' };
const headers = { 'idempotency-key': 'make acme' };

describe('the key of a management write', () => {
  it('repeats the stored answer, marked as a replay, and does the work once', async () => {
    const first = await send(key, 'tenants.create', { body, headers });
    const again = await send(key, 'tenants.create', { body, headers });
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(first.headers.get('idempotent-replayed')).toBeNull();
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await again.json()).toEqual(await first.json());
    expect(await sql('SELECT id FROM tenants WHERE slug = ?', 'acme')).toHaveLength(1);
  });

  it('refuses another body, another path and another method under it', async () => {
    const tenant = await call(key, 'tenants.create', { body, headers });
    const other = { ...body, name: 'Another' };
    expect(await refusal(key, 'tenants.create', { body: other, headers })).toMatchObject({
      code: 'idempotency_conflict',
    });
    expect(
      await refusal(key, 'identities.create', {
        params: { tenant_id: (tenant as { id: string }).id },
        body: { username: 'desk', display_name: 'Desk' },
        headers,
      }),
    ).toMatchObject({ code: 'idempotency_conflict' });
  });

  it('belongs to the API key that used it', async () => {
    await call(key, 'tenants.create', { body, headers });
    const second = await deployAnother();
    const other = { slug: 'other', name: 'Other', mode: 'test' };
    await call(second, 'tenants.create', { body: other, headers, status: 201 });
  });

  it('is free again after a refusal', async () => {
    await call(key, 'tenants.create', { body });
    expect(await refusal(key, 'tenants.create', { body, headers })).toMatchObject({ code: 'slug_taken' });
    await call(key, 'tenants.create', { body: { ...body, slug: 'acme-two' }, headers, status: 201 });
  });

  it('lets one of many requests at once do the work', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(key, 'tenants.create', { body, headers })));
    for (const status of statuses(answers)) expect([201, 409]).toContain(status);
    const codes = await Promise.all(
      answers
        .filter(({ status }) => status === 409)
        .map(async (answer) => (await answer.json<{ error: { code: string } }>()).error.code),
    );
    expect(new Set([...codes, 'request_in_progress'])).toEqual(new Set(['request_in_progress']));
    expect(await sql('SELECT id FROM tenants WHERE slug = ?', 'acme')).toHaveLength(1);
  });

  it('is refused while the first request runs, and taken over when that one is dead for a minute', async () => {
    await call(key, 'tenants.create', { body, headers });
    const running = "UPDATE idempotency_records SET status = 'in_progress', response_body = NULL, created_at = ?";
    await sql(running, Date.now() - 59_000);
    expect(await refusal(key, 'tenants.create', { body, headers })).toMatchObject({ code: 'request_in_progress' });
    await sql(running, Date.now() - 60_000);
    // The work runs again, and finds that it was done.
    expect(await refusal(key, 'tenants.create', { body, headers })).toMatchObject({ code: 'slug_taken' });
  });

  it('counts as new after thirty days', async () => {
    await call(key, 'tenants.create', { body, headers });
    await sql('UPDATE idempotency_records SET expires_at = ?', Date.now() - 1);
    await call(key, 'tenants.create', { body: { ...body, slug: 'later' }, headers, status: 201 });
  });

  it('never stores a secret, and a replay says that it has none', async () => {
    const create = { name: 'ops', level: 'platform', permissions: ['platform:ops'] };
    const first = (await call(key, 'keys.create', { body: create, headers })) as { secret: string };
    expect(first.secret).toMatch(/^pmk_live_/);
    const again = (await call(key, 'keys.create', { body: create, headers })) as Record<string, unknown>;
    expect(again).toMatchObject({ secret_replayed: false });
    expect(again).not.toHaveProperty('secret');
    const rows = JSON.stringify(await sql('SELECT * FROM idempotency_records'));
    expect(rows).not.toContain(first.secret);
    expect(rows).not.toContain('make acme');
  });
});

async function deployAnother(): Promise<string> {
  const create = { name: 'another', level: 'platform', permissions: ['tenants:manage'] };
  return ((await call(key, 'keys.create', { body: create })) as { secret: string }).secret;
}

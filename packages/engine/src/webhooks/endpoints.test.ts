import { beforeEach, describe, expect, test } from 'vitest';
import { auditEntry, newId, rows, tenantRow } from '../directory/directory.fixture.ts';
import {
  addEndpoint,
  changeEndpoint,
  deleteEndpoint,
  type EndpointChange,
  type EndpointId,
  listEndpoints,
  rotateEndpointSecret,
} from './endpoints.ts';
import { Hooks } from './webhooks.fixture.ts';

/** Endpoints as rows: their bound, changes that meet, and what goes with one that is deleted. */

let hooks: Hooks;
let endpoint: EndpointId;

beforeEach(async () => {
  hooks = await Hooks.create();
  endpoint = await hooks.endpoint();
});

const audit = () => auditEntry('webhook.change', hooks.tenant.id);
const audited = () => rows(hooks.db, "SELECT 1 FROM audit_log WHERE action = 'webhook.change'");

describe('adding', () => {
  test('stops at the bound of its owner, and only at that', async () => {
    const other = tenantRow('other');
    await hooks.addTenant(other);
    const row = await hooks.row(endpoint);
    const add = (tenant_id: typeof row.tenant_id) =>
      addEndpoint(hooks.db, { ...row, id: newId('whk', hooks.now), tenant_id }, 3, audit());
    const answers: boolean[] = [];
    for (let n = 0; n < 4; n++) answers.push(await add(hooks.tenant.id));
    expect(answers).toEqual([true, true, false, false]);
    expect(await audited()).toHaveLength(2);
    expect(await Promise.all([1, 2, 3, 4].map(() => add(other.id)))).toEqual([true, true, true, false]);
    expect(await Promise.all([1, 2, 3, 4].map(() => add(null)))).toEqual([true, true, true, false]);
  });

  test('is seen by whom it concerns, newest first', async () => {
    const platform = await hooks.endpoint({ tenant_id: null });
    hooks.now += 1;
    const newer = await hooks.endpoint();
    const ids = async (tenant: Parameters<typeof listEndpoints>[1]) =>
      (await listEndpoints(hooks.db, tenant, 10, null)).map(({ id }) => id);
    expect(await ids(hooks.tenant.id)).toEqual([newer, endpoint]);
    expect(await ids(null)).toEqual([platform]);
    expect((await ids(undefined)).sort()).toEqual([newer, endpoint, platform].sort());
    expect((await ids(undefined))[0]).toBe(newer);
  });
});

describe('a change', () => {
  const change = async (changes: Partial<EndpointChange>): Promise<EndpointChange> => {
    const { url, description, event_types_json, identity_ids_json, enabled, disabled_reason } =
      await hooks.row(endpoint);
    const kept = { url, description, event_types_json, identity_ids_json, enabled, disabled_reason };
    return { ...kept, forgets: false, ...changes };
  };

  test('that somebody overtook is not written, nor logged', async () => {
    const seen = await hooks.row(endpoint);
    const first = await changeEndpoint(hooks.db, seen, await change({ description: 'one' }), hooks.now, audit());
    expect(first).toMatchObject({ description: 'one' });
    // In the same millisecond, too.
    const second = await changeEndpoint(hooks.db, seen, await change({ description: 'two' }), hooks.now, audit());
    expect(second).toBeUndefined();
    expect(await hooks.row(endpoint)).toMatchObject({ description: 'one' });
    expect(await audited()).toHaveLength(1);
  });

  test('does not undo that the endpoint was switched off meanwhile', async () => {
    const [event = 'evt_'] = await hooks.told(1);
    const seen = await hooks.row(endpoint);
    await hooks.record(endpoint, await hooks.take(endpoint, event), 'status_410');
    const late = await changeEndpoint(hooks.db, seen, await change({ enabled: 1 }), hooks.now, audit());
    expect(late).toBeUndefined();
    expect(await hooks.row(endpoint)).toMatchObject({ enabled: 0, disabled_reason: 'failing' });
  });

  test('forgets failures when it says so, on or off before', async () => {
    for (const enabled of [0, 1] as const) {
      await hooks.set(endpoint, { enabled, consecutive_failures: 99, first_failure_at: 1 });
      await changeEndpoint(hooks.db, await hooks.row(endpoint), await change({ description: 'x' }), hooks.now, audit());
      expect(await hooks.row(endpoint)).toMatchObject({ consecutive_failures: 99, first_failure_at: 1 });
      const seen = await hooks.row(endpoint);
      await changeEndpoint(hooks.db, seen, await change({ enabled: 1, forgets: true }), hooks.now, audit());
      expect(await hooks.row(endpoint)).toMatchObject({ consecutive_failures: 0, first_failure_at: null, enabled: 1 });
    }
  });
});

describe('another secret', () => {
  const rotate = async (seen: Awaited<ReturnType<Hooks['row']>>, name: string) =>
    rotateEndpointSecret(
      hooks.db,
      seen,
      { secret_enc: name, prev_secret_enc: `prev ${seen.secret_enc}`, prev_secret_expires_at: 5 },
      hooks.now,
      audit(),
    );

  test('replaces the one that was seen, so that of two at once one is told to look again', async () => {
    const seen = await hooks.row(endpoint);
    expect(await rotate(seen, 'one')).toMatchObject({ secret_enc: 'one', prev_secret_enc: 'prev sealed' });
    expect(await rotate(seen, 'two')).toBeUndefined();
    expect(await audited()).toHaveLength(1);
    expect(await rotate(await hooks.row(endpoint), 'two')).toMatchObject({
      secret_enc: 'two',
      prev_secret_enc: 'prev one',
      prev_secret_expires_at: 5,
    });
  });

  test('of an endpoint that is gone is none', async () => {
    const seen = await hooks.row(endpoint);
    await deleteEndpoint(hooks.db, endpoint, auditEntry('webhook.delete', hooks.tenant.id));
    expect(await rotate(seen, 'one')).toBeUndefined();
    expect(await audited()).toEqual([]);
  });
});

test('an endpoint goes with its attempts and what was due, and is logged once', async () => {
  await hooks.told(2);
  const [event = 'evt_'] = await hooks.told(1);
  await hooks.record(endpoint, await hooks.take(endpoint, event), 'timeout');
  for (let n = 0; n < 2; n++) await deleteEndpoint(hooks.db, endpoint, audit());
  expect([await hooks.attempts(endpoint), await hooks.work(endpoint), (await audited()).length]).toEqual([[], [], 1]);
});

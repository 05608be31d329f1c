import type { DomainState } from '@pmail/core/policy/types.ts';
import { describe, expect, test } from 'vitest';
import { Service } from './service.fixture.ts';

/** Whatever the directory says about its domains, a test tenant's mail reaches the two test transports and no other. */

const STATES: DomainState[] = [
  'pending',
  'verifying',
  'healthy',
  'degraded',
  'failing',
  'suspended',
  'removing',
  'removed',
];

describe.each(['cloudflare', 'ses', 'smtp'] as const)('a test tenant on a domain that sends by %s', (transport) => {
  test.each(STATES)('and is %s reaches nothing but test transports', async (state) => {
    const service = await Service.create({ tenant: { mode: 'test', policy_json: '{"domain_fallback":true}' } });
    const simulated = await service.send({ to: ['delivered@simulator.invalid'] });
    const local = await service.send({ to: [service.address] });
    const mixed = await service.send({ to: ['bounce@simulator.invalid'], cc: [service.address] });
    await service.set('domains', 'transport', transport);
    await service.set('domains', 'state', state);
    for (const { id } of [simulated, local, mixed]) await service.consume(id);
    const leaves = state === 'healthy' || state === 'degraded';
    expect(service.calls).toEqual(leaves ? { simulator: 2, loopback: 1 } : {});
  });
});

test('a live tenant reaches no test transport', async () => {
  const service = await Service.create();
  for (const to of ['delivered@simulator.invalid', service.address]) {
    await service.consume((await service.send({ to: [to] })).id);
  }
  expect(service.calls).toEqual({ cloudflare: 2 });
});

test('a test tenant cannot even submit mail to anyone else', async () => {
  const service = await Service.create({ tenant: { mode: 'test' } });
  for (const to of ['jo@example.net', 'nobody@agents.example', 'x@sub.simulator.invalid']) {
    await expect(service.send({ to: [to] })).rejects.toThrow('test_mode_recipient');
  }
  await expect(service.send({ to: ['delivered@simulator.invalid'], bcc: ['jo@example.net'] })).rejects.toThrow(
    'test_mode_recipient',
  );
});

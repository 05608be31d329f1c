import type { TransportResult } from '@pmail/core/transport/types.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { REJECTED } from '../mailbox/transport.fixture.ts';
import { Service } from './service.fixture.ts';

let service: Service;

const UNAVAILABLE: TransportResult = {
  kind: 'rejected',
  reason: 'sender_domain_unavailable',
  code: 'E_SENDER_NOT_VERIFIED',
  detail: 'verify it first',
  refused: [],
};

beforeEach(async () => {
  service = await Service.create();
});

describe('a refusal because of the sending domain', () => {
  test('asks for a check of it, once the refusal is recorded', async () => {
    const { id } = await service.send();
    service.transports.cloudflare.answers.push(UNAVAILABLE);
    await service.consume(id);
    expect(service.rig.message(id)).toMatchObject({ status: 'rejected', status_reason: 'sender_domain_unavailable' });
    expect(service.checks).toEqual([{ domain: 'agents.example', issue: 'sender_domain_unavailable' }]);
  });

  test('by SES asks for one of the domain that sends by it', async () => {
    await service.addOwnDomain('ses');
    const { id } = await service.send();
    service.transports.ses.answers.push({ ...UNAVAILABLE, code: 'MailFromDomainNotVerifiedException' });
    await service.consume(id);
    expect(service.checks).toEqual([{ domain: 'acme.example.com', issue: 'sender_domain_unavailable' }]);
  });

  test('stays recorded when nobody can be asked', async () => {
    const { id } = await service.send();
    service.transports.cloudflare.answers.push(UNAVAILABLE);
    service.checking.failNext();
    expect(await service.consume(id)).toEqual({ kind: 'ack' });
    expect(service.rig.message(id).status).toBe('rejected');
    expect(service.rig.logged).toContain('domain_check_not_asked');
  });
});

test('any other refusal asks for nothing; the transport of a relay asks by itself', async () => {
  const { id } = await service.send();
  service.transports.cloudflare.answers.push(REJECTED);
  await service.consume(id);
  await service.addOwnDomain('smtp');
  const { id: byRelay } = await service.send();
  service.transports.smtp.answers.push(UNAVAILABLE);
  await service.consume(byRelay);
  expect(service.rig.message(byRelay).status).toBe('rejected');
  expect(service.checks).toEqual([]);
});

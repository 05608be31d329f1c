import { createMessageBatch } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import type { DomainId, MessageId, TenantId } from '@pmail/core/ids.ts';
import type { RelaySettings } from '@pmail/core/smtp/settings.ts';
import { sentKey } from '@pmail/core/storage/keys.ts';
import type { ScriptStep } from '@pmail/testkit/smtp/script.ts';
import { ALL, BODY, EHLO, GREETING, LOGIN, MAIL, letter as mail, QUIT } from '@pmail/transports/smtp/relay.fixture.ts';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { relayTransport } from '../src/consumers/relay.ts';
import { config } from '../src/env.ts';
import worker from '../src/index.ts';
import { newId } from '../src/ports/random.ts';
import { openRelay, sealRelay } from '../src/ports/relay-settings.ts';
import { accepted, atRest, letter, makeLab, person, type Sent, until, waiting } from './mail.ts';
import { meant, RemoteRelay } from './relay/control.ts';
import { keepStorage } from './storage.ts';
import { addDomain, call, db, deploy, makeKey, sql, tenant } from './support.ts';

/** A domain with a relay of its own: from the API to the relay's mailbox, in the runtime, with sealed credentials. */

keepStorage();

const relay = new RemoteRelay('domain');
const DOMAIN = 'acme.example.com';
const JO = 'jo@example.net';

let root: string;
let acme: TenantId;
let key: string;
let domain: DomainId;
let desk: string;

const masterKey = () => config(env).master_key;

function settings(changes: Partial<RelaySettings> = {}): RelaySettings {
  const local = { host: 'localhost', port: relay.ports.port, tls: 'implicit' as const };
  return { ...local, ...LOGIN, probe_from: `postmaster@${DOMAIN}`, ...changes };
}

async function setRelay(changes: Partial<RelaySettings> = {}, id: DomainId = domain): Promise<void> {
  const sealed = await sealRelay(masterKey(), id, settings(changes));
  await sql('UPDATE domains SET smtp_sealed = CAST(? AS BLOB) WHERE id = ?', sealed, domain);
}

const play = (...steps: ScriptStep[]) => relay.play('implicit', steps);

beforeAll(async () => {
  root = await deploy();
  acme = (await tenant(root, 'acme')).id;
  key = await makeKey(root, { level: 'tenant', tenant_id: acme });
  domain = (await addDomain(acme, DOMAIN, { method: 'smtp_relay' })) as DomainId;
  await sql("UPDATE domains SET transport = 'smtp' WHERE id = ?", domain);
  desk = await person(root, acme, 'desk', { domain_id: domain });
});

beforeEach(() => setRelay());

const get = (message: Sent) => call(key, 'messages.get', { params: { identity_id: desk, message_id: message.id } });

const ends = (message: Sent, status: string) =>
  until(async () => {
    const now = await get(message);
    expect(now.status).toBe(status);
    return now;
  });

const post = (changes: Parameters<typeof letter>[0] = {}) => accepted(key, desk, letter({ to: [JO], ...changes }));

/** Lets a batch of the send queue be consumed as the platform does. */
function consume(messages: { id: string }[]): Promise<void> {
  const bodies = messages.map(({ id }) => ({
    v: 1 as const,
    kind: 'send' as const,
    tenant_id: acme,
    identity_id: desk as never,
    message_id: id as MessageId,
    request_id: newId('req', Date.now()),
  }));
  const batch = createMessageBatch(
    'pm-outbound',
    bodies.map((body) => ({ id: body.message_id, timestamp: new Date(), attempts: 1, body })),
  );
  return Promise.resolve(worker.queue(batch, env));
}

describe('a message of the domain', () => {
  test('leaves by the relay as it was stored, and is submitted', async () => {
    await play(...ALL);
    const sent = await post({ subject: 'Größe', text: '.\n..\nHello\n' });
    const message = await ends(sent, 'submitted');
    const rfc = `${sent.id.slice(4).toLowerCase()}@${DOMAIN}`;
    expect(message).toMatchObject({
      provider: 'smtp',
      provider_message_id: `smtp:localhost:${rfc}`,
      rfc_message_id: rfc,
      deliveries: [{ address: JO, status: 'submitted' }],
    });
    const { sessions } = await relay.heard();
    expect(sessions).toMatchObject([{ mismatch: null, taken: [[JO]] }]);
    expect(sessions[0]?.lines[0]).toBe('EHLO api.example');
    const object = await env.BLOBS.get(sentKey({ tenant_id: acme, identity_id: desk as never }, sent.id));
    expect(meant(sessions[0]?.bodies[0] ?? '')).toEqual(new Uint8Array((await object?.arrayBuffer()) ?? []));
    await atRest(desk);
  });

  test('has credentials that stand nowhere to be read', async () => {
    const [row] = await sql('SELECT CAST(smtp_sealed AS TEXT) AS sealed FROM domains WHERE id = ?', domain);
    expect(String(row?.['sealed'])).toMatch(/^pm1\.[0-9a-f]{16}\./);
    const everything = JSON.stringify(await sql('SELECT * FROM domains'));
    for (const secret of [LOGIN.password, btoa(`\0${LOGIN.username}\0${LOGIN.password}`)]) {
      expect(everything).not.toContain(secret);
    }
    expect(await openRelay(masterKey(), domain, String(row?.['sealed']))).toEqual(settings());
  });

  test('waits while its credentials do not open, for they are those of another domain', async () => {
    await play(...ALL);
    await setRelay({}, newId('dom', Date.now()));
    const sent = await waiting(key, desk, letter({ to: [JO] }));
    await consume([sent]);
    expect((await get(sent)).status).toBe('queued');
    expect((await relay.heard()).sessions).toEqual([]);
  });

  test.each([
    ['a relay on this machine under another name', { host: 'relay.localhost', port: 465 }],
    ['a port that is not for relays', { host: 'smtp.relay.example.net', port: 25 }],
  ])('waits when it would leave by %s', async (_what, changes) => {
    await play(...ALL);
    await setRelay(changes);
    const sent = await waiting(key, desk, letter({ to: [JO] }));
    await consume([sent]);
    expect((await get(sent)).status).toBe('queued');
    expect((await relay.heard()).sessions).toEqual([]);
  });

  test('is refused for the domain when the relay refuses the login, and a check is asked for', async () => {
    await play(GREETING, EHLO, { expect: '^AUTH', send: ['535 5.7.8 No'] }, QUIT);
    const message = await ends(await post(), 'rejected');
    expect(message).toMatchObject({
      status_reason: 'sender_domain_unavailable',
      deliveries: [{ status: 'rejected', smtp_code: '535' }],
    });
    const asked: unknown[] = [];
    const requestDomainCheck = async (...about: unknown[]): Promise<void> => void asked.push(about);
    const ports = { db, hmac: async () => new Uint8Array(32), requestDomainCheck };
    const transport = relayTransport(env, ports, { tenant_id: acme, identity_id: desk as never });
    await transport.send(mail(), 10_000);
    expect(asked).toEqual([['acme.example.com', 'smtp_auth_failed']]);
  });

  test('never leaves by the relay of another tenant', async () => {
    const other = (await tenant(root, `other`)).id;
    const transport = relayTransport(
      env,
      { db, hmac: async () => new Uint8Array(32), requestDomainCheck: async () => {} },
      { tenant_id: other, identity_id: desk as never },
    );
    expect(await transport.send(mail(), 10_000)).toMatchObject({ kind: 'retry_later', code: 'relay_not_configured' });
  });

  test('of a relay that closes behind the final dot is uncertain, and stays so', async () => {
    await play(...ALL.slice(0, -2), { ...BODY, send: [], close: true });
    const sent = await post();
    expect(await ends(sent, 'uncertain')).toMatchObject({ status_reason: 'transport_connection_lost' });
    await play(...ALL);
    await consume([sent]);
    expect((await relay.heard()).sessions).toEqual([]);
  });
});

describe('a batch', () => {
  test('of ten sends never holds more than four connections', async () => {
    const slow = { ...MAIL, silent_s: 0.2 };
    await play(...ALL.map((step) => (step === MAIL ? slow : step)));
    const messages: Sent[] = [];
    for (let n = 0; n < 10; n++) messages.push(await waiting(key, desk, letter({ to: [JO], subject: `Number ${n}` })));
    await consume(messages);
    const { open_most, sessions } = await relay.heard();
    expect([open_most, sessions.length]).toEqual([4, 10]);
    for (const message of messages) expect((await get(message)).status).toBe('submitted');
  });

  test('goes on with its other jobs while a relay hangs', async () => {
    await play(GREETING, { expect: '^EHLO ' });
    const hanging = await waiting(key, desk, letter({ to: [JO] }));
    const lab = await makeLab(root);
    const quick = await waiting(lab.key, lab.ann, letter());
    const run = vi.fn();
    const body = (id: string, tenant_id: string, identity_id: string) => ({
      id,
      timestamp: new Date(),
      attempts: 1,
      body: { v: 1, kind: 'send', tenant_id, identity_id, message_id: id, request_id: newId('req', Date.now()) },
    });
    const batch = createMessageBatch('pm-outbound', [
      body(hanging.id, acme, desk),
      body(quick.id, lab.tenant, lab.ann),
    ]);
    const done = Promise.resolve(worker.queue(batch, env)).then(run);
    await until(async () => {
      const now = await call(lab.key, 'messages.get', { params: { identity_id: lab.ann, message_id: quick.id } });
      expect(now.status).not.toBe('queued');
    });
    expect(run).not.toHaveBeenCalled();
    await until(async () => expect((await relay.heard()).sessions[0]?.lines).toEqual(['EHLO api.example']));
    await relay.hangUp();
    await done;
    expect((await get(hanging)).status).toBe('queued');
  });
});

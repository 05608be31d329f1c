import type { MessageId } from '@pmail/core/ids.ts';
import { describe, expect, test } from 'vitest';
import { DAY, type Ended, play, type Scenario } from '../cases/scenario.fixture.ts';
import type { Conflict, Intent } from '../client.ts';
import { evidenceOf } from './evidence.fixture.ts';
import { oneMessagePerKey, refusalsTrue } from './keys.ts';

const OTHER = 'msg_00000000000000000000000000' as MessageId;

function found(scene: Ended): string {
  return [oneMessagePerKey, refusalsTrue]
    .flatMap((check) => check(evidenceOf(scene)))
    .map(({ invariant, text }) => `${invariant} ${text}`)
    .join('\n');
}

async function run(scenario: Partial<Scenario> = {}): Promise<{ scene: Ended; intent: Intent }> {
  const scene = await play({ meets: [], ...scenario }, async (own) => void (await own.send('key')));
  const [intent] = scene.intents;
  if (intent === undefined) throw new Error('nothing was sent');
  expect(found(scene)).toBe('');
  return { scene, intent };
}

/** Another body was asked for so long after the answer, and this is what came of it. */
function ask(intent: Intent, after: number, end: Partial<Conflict>): void {
  const begun = (intent.answered_at[0] ?? 0) + after;
  intent.conflicts.push({ begun_at: begun, at: begun + 100, ok: false, id: null, code: null, ...end });
}

describe('oneMessagePerKey finds', () => {
  test.each([
    ['before', -1_000],
    ['after', 1_000],
    ['29 days after', 29 * DAY],
  ])('another body that was accepted %s the answer', async (_when, after) => {
    const { scene, intent } = await run();
    ask(intent, after, { ok: true, id: OTHER });
    expect(found(scene)).toContain('I5 key accepted a second body');
  });

  test('no fault in another body when the key had run out', async () => {
    const { scene, intent } = await run();
    ask(intent, 31 * DAY, { ok: true, id: OTHER });
    expect(found(scene)).toBe('');
  });

  test('another body that was refused as if the key were new', async () => {
    const { scene, intent } = await run({ tenants: [{ mode: 'live', identities: 2, granted: 5 }] });
    ask(intent, 1_000, { code: 'billing_limit' });
    expect(found(scene)).toContain('I5 key answered another body billing_limit, and had a message');
  });

  test('another body that was refused without a cause, and none that has to wait', async () => {
    const { scene, intent } = await run();
    ask(intent, -1_000, { code: 'unavailable' });
    ask(intent, 1_000, { code: 'idempotency_conflict' });
    expect(found(scene)).toBe('');
    ask(intent, -1_000, { code: 'identity_not_found' });
    expect(found(scene)).toContain('I5 key refused another body');
  });
});

describe('refusalsTrue finds', () => {
  test.each([
    'daily_cap_reached',
    'billing_limit',
    'identity_paused',
    'tenant_suspended',
    'message_too_large',
    'idempotency_conflict',
    'message_not_found',
    'identity_not_found',
    'invalid_request',
  ] as const)('%s without its cause', async (code) => {
    const { scene, intent } = await run();
    Object.assign(intent, { refused: code, refused_at: intent.answered_at[0] });
    expect(found(scene)).toContain(`I2 key was refused: ${code}`);
  });

  test('a pause that began only afterwards', async () => {
    const { scene, intent } = await run();
    const at = intent.answered_at[0] ?? 0;
    Object.assign(intent, { refused: 'identity_paused', refused_at: at });
    const ban = { subject: intent.identity.identity_id, what: 'paused', until: Number.POSITIVE_INFINITY };
    scene.stage.deployment.standing.bans.push({ ...ban, from: at + 1 });
    expect(found(scene)).toContain('nobody paused it');
    scene.stage.deployment.standing.bans.push({ ...ban, from: at - 1 });
    expect(found(scene)).toBe('');
  });
});

import { describe, expect, it } from 'vitest';
import type { ErrorCode } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import type { Refusal } from '../result.ts';
import { address, LATE, NOW, platformAddress, sendContext, target, thread } from './context.fixture.ts';
import { checkLate, newDraft, POLICY_STEPS, planSend } from './pipeline.ts';
import type { LateFacts, SendContext } from './types.ts';

/** One way to break exactly one step; the step that never refuses has no code. */
interface Violation {
  step: number;
  code: ErrorCode | null;
  context?: (context: SendContext) => SendContext;
  late?: Partial<LateFacts>;
}

type Directory = SendContext['directory'];

function directory(change: (directory: Directory) => Partial<Directory>): (context: SendContext) => SendContext {
  return (context) => ({ ...context, directory: { ...context.directory, ...change(context.directory) } });
}

function identity(change: Partial<Directory['identity']>): (context: SendContext) => SendContext {
  return directory((known) => ({ identity: { ...known.identity, ...change } }));
}

function tenant(change: Partial<Directory['tenant']>): (context: SendContext) => SendContext {
  return directory((known) => ({ tenant: { ...known.tenant, ...change } }));
}

function domains(change: Partial<Directory['addresses'][number]['domain']>): (context: SendContext) => SendContext {
  return directory((known) => ({
    addresses: known.addresses.map((entry) => ({ ...entry, domain: { ...entry.domain, ...change } })),
  }));
}

function body(change: (body: SendContext['body']) => SendContext['body']): (context: SendContext) => SendContext {
  return (context) => ({ ...context, body: { ...context.body, ...change(context.body) } });
}

const MANY = Array.from({ length: 11 }, (_, i) => `r${i}@example.net`);

const VIOLATIONS: Violation[] = [
  { step: 1, code: 'identity_not_found', context: identity({ status: 'deleting' }) },
  { step: 2, code: 'tenant_suspended', context: tenant({ status: 'suspended' }) },
  { step: 3, code: 'identity_paused', context: identity({ status: 'paused', pause_reason: 'tenant_suspended' }) },
  { step: 4, code: 'identity_owner_required', context: identity({ owner_email: null }) },
  { step: 5, code: 'thread_not_found', context: body(() => ({ thread_id: thread().id })) },
  { step: 6, code: 'address_invalid', context: body(({ to = [] }) => ({ to: [...to, 'nobody'] })) },
  { step: 7, code: 'too_many_recipients', context: body(({ to = [] }) => ({ to: [...to, ...MANY] })) },
  { step: 8, code: 'test_mode_recipient', context: tenant({ mode: 'test' }) },
  { step: 9, code: 'marketing_requirements_missing', context: body(() => ({ kind: 'marketing' })) },
  { step: 10, code: 'auto_reply_not_allowed', context: body(() => ({ kind: 'auto_reply' })) },
  { step: 11, code: 'header_not_allowed', context: body(() => ({ headers: { Received: 'x' } })) },
  { step: 12, code: 'invalid_request', context: body(() => ({ text: undefined })) },
  { step: 13, code: 'invalid_request', context: body(() => ({ from_address: 'old@acme.example.com' })) },
  { step: 14, code: 'domain_not_ready', context: domains({ state: 'verifying' }) },
  { step: 15, code: 'transport_unavailable', context: domains({ transport: 'ses' }) },
  { step: 16, code: null, context: directory(() => ({ suppressions: { 'jo@example.net': 'complaint' } })) },
  { step: 17, code: 'message_too_large', late: { composed_bytes: LIMITS.composed_bytes_max + 1 } },
  {
    step: 18,
    code: 'billing_limit',
    late: { reservation: { kind: 'denied', feature: 'sends', granted: 1, used: 1, resets_at: null } },
  },
  { step: 19, code: 'thread_busy', late: { lock_held_until: NOW + 1_000 } },
];

/** Both of a pair set the same field, so that no request can break the two at once. */
const EXCLUSIVE = ['1 and 3', '9 and 10'];

const CLEAN = sendContext({
  directory: {
    addresses: [
      address(),
      address({ address: 'old@acme.example.com', role: 'alias', status: 'retiring' }),
      platformAddress(),
    ],
    deployment: { ses_configured: false, smtp_enabled: false },
  },
});

/** The answer of the whole pipeline: the request phase, then each late step in the order of the table. */
function evaluate(context: SendContext, late: LateFacts): Refusal | null {
  const plan = planSend(context);
  if (!plan.ok) return plan;
  for (const step of POLICY_STEPS) {
    const refusal = step.phase === 'request' ? null : checkLate(step.phase, context, plan.value, late);
    if (refusal !== null) return refusal;
  }
  return null;
}

function evaluateWith(...violations: Violation[]): Refusal | null {
  let context = CLEAN;
  let late = LATE;
  for (const violation of violations) {
    context = violation.context?.(context) ?? context;
    late = { ...late, ...violation.late };
  }
  return evaluate(context, late);
}

describe('the table of steps', () => {
  it('holds steps 1 to 19 in order', () => {
    expect(POLICY_STEPS.map(({ number }) => number)).toEqual(Array.from({ length: 19 }, (_, i) => i + 1));
    expect(new Set(POLICY_STEPS.map(({ name }) => name)).size).toBe(19);
  });

  it('leaves to the late phases what is known only after composing, and in that order', () => {
    expect(POLICY_STEPS.filter(({ phase }) => phase !== 'request').map(({ phase }) => phase)).toEqual([
      'size',
      'quota',
      'lock',
    ]);
  });
});

describe('a request without faults', () => {
  it('passes every step', () => {
    expect(evaluate(CLEAN, LATE)).toBeNull();
  });

  it('gets a plan with recipients, From, headers, hop and kind', () => {
    expect(planSend(CLEAN)).toEqual({
      ok: true,
      value: {
        recipients: [{ address: 'jo@example.net', name: '', field: 'to', filtered: null }],
        from: address(),
        headers: [],
        hop: 1,
        kind: 'transactional',
      },
    });
  });

  it('passes as a reply, a reply to all and a forward', () => {
    for (const operation of ['reply', 'reply_all', 'forward'] as const) {
      const context = sendContext({ operation, target: target(), thread: thread() });
      expect(evaluate(context, LATE)).toBeNull();
    }
  });

  it('starts from a draft without recipients or From', () => {
    expect(newDraft(sendContext({ body: { kind: 'auto_reply' } }))).toEqual({
      recipients: [],
      from: null,
      headers: [],
      hop: 1,
      kind: 'auto_reply',
    });
  });
});

describe('one fault', () => {
  it.each(VIOLATIONS)('step $step answers $code', (violation) => {
    expect(evaluateWith(violation)?.code ?? null).toBe(violation.code);
  });
});

describe('two faults get the answer of the earlier step', () => {
  const pairs = VIOLATIONS.flatMap((first, i) =>
    VIOLATIONS.slice(i + 1).map((second) => ({ first, second, name: `${first.step} and ${second.step}` })),
  ).filter(({ name }) => !EXCLUSIVE.includes(name));

  it('covers every pair of neighbours but the one that cannot occur', () => {
    const neighbours = pairs.filter(({ first, second }) => second.step === first.step + 1);
    expect(neighbours).toHaveLength(17);
    expect(pairs).toHaveLength((19 * 18) / 2 - EXCLUSIVE.length);
  });

  it.each(pairs)('steps $name', ({ first, second }) => {
    const refusal = evaluateWith(first, second);
    expect(refusal?.code).toBe(first.code ?? second.code);
    // Codes alone do not tell steps 12 and 13 apart.
    if (first.step === 12) expect(refusal).toMatchObject({ details: { errors: [{ path: 'text' }] } });
    if (first.step === 13) expect(refusal).toMatchObject({ details: { errors: [{ path: 'from_address' }] } });
  });

  it('does not depend on which fault was made first', () => {
    for (const { first, second } of pairs) {
      expect(evaluateWith(second, first)?.code).toBe(first.code ?? second.code);
    }
  });
});

describe('late steps', () => {
  const plan = planSend(CLEAN);
  const broken: LateFacts = {
    composed_bytes: LIMITS.composed_bytes_max + 1,
    reservation: { kind: 'cap_reached', scope: 'tenant', resets_at: '2026-12-01T00:00:00.000Z' },
    lock_held_until: NOW + 1_000,
  };

  it.each([
    ['size', 'message_too_large'],
    ['quota', 'daily_cap_reached'],
    ['lock', 'thread_busy'],
  ] as const)('phase %s runs its own step and no other', (phase, code) => {
    if (!plan.ok) throw new Error('the clean request was refused');
    expect(checkLate(phase, CLEAN, plan.value, broken)?.code).toBe(code);
    expect(checkLate(phase, CLEAN, plan.value, LATE)).toBeNull();
  });
});

describe('a suspended tenant', () => {
  it('is named before the pause that its suspension caused', () => {
    const paused = sendContext({
      tenant: { status: 'suspended' },
      identity: { status: 'paused', pause_reason: 'tenant_suspended' },
    });
    expect(planSend(paused)).toEqual({ ok: false, code: 'tenant_suspended' });
  });
});

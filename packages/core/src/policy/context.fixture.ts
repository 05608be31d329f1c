import type { DomainId } from '../ids.ts';
import type { SendBody } from '../message/request.ts';
import type { Refusal } from '../result.ts';
import { DEFAULT_POLICY, type Policy } from './document.ts';
import { newDraft } from './pipeline.ts';
import type { LateStep, RequestStep } from './step.ts';
import type {
  AddressFacts,
  DirectoryFacts,
  DomainFacts,
  IdentityFacts,
  LateFacts,
  PlannedRecipient,
  RecipientField,
  SendContext,
  SendDraft,
  TargetFacts,
  TenantFacts,
  ThreadFacts,
} from './types.ts';

/** A ULID-shaped ending, so that ids of the fixtures pass every check. */
const ULID = '01JD9Q3V7M8X2C4N6B5K1R0E9T';

export const NOW = Date.UTC(2026, 10, 30, 9, 0, 0);

export function domain(overrides: Partial<DomainFacts> = {}): DomainFacts {
  return {
    id: `dom_${ULID}` satisfies DomainId,
    name: 'acme.example.com',
    state: 'healthy',
    is_platform: false,
    transport: 'cloudflare',
    inbound: 'routing',
    reply_token: 'subaddress',
    sending: true,
    ...overrides,
  };
}

export function address(
  overrides: Partial<Omit<AddressFacts, 'domain'>> & { domain?: Partial<DomainFacts> } = {},
): AddressFacts {
  return {
    id: `adr_${ULID}`,
    address: 'desk@acme.example.com',
    role: 'primary',
    status: 'active',
    ...overrides,
    domain: domain(overrides.domain),
  };
}

/** The address every identity keeps on the platform's own domain. */
export function platformAddress(
  overrides: Partial<Omit<AddressFacts, 'domain'>> & { domain?: Partial<DomainFacts> } = {},
): AddressFacts {
  return address({
    address: 'desk.acme@agents.example',
    role: 'alias',
    ...overrides,
    domain: { name: 'agents.example', is_platform: true, ...overrides.domain },
  });
}

export function target(overrides: Partial<TargetFacts> = {}): TargetFacts {
  return {
    id: `msg_${ULID}`,
    direction: 'inbound',
    status: 'received',
    kind: 'normal',
    from: { address: 'jo@example.net', name: 'Jo' },
    reply_to: [],
    to: [{ address: 'desk@acme.example.com', name: '' }],
    cc: [],
    known_sender: false,
    hop: 0,
    ...overrides,
  };
}

export function thread(overrides: Partial<ThreadFacts> = {}): ThreadFacts {
  return {
    seq: 115,
    id: `thr_${ULID}`,
    reply_from_address: 'desk@acme.example.com',
    fallback_pinned: false,
    last_at: NOW,
    used_from: [],
    automatic_exchanges: 0,
    hop: 0,
    ...overrides,
  };
}

/** What may differ from a send that every step lets pass; each part is merged over the valid one. */
export interface Overrides extends Partial<Omit<SendContext, 'body' | 'directory'>> {
  body?: SendBody;
  identity?: Partial<IdentityFacts>;
  tenant?: Partial<Omit<TenantFacts, 'policy'>>;
  policy?: Partial<Policy>;
  directory?: Partial<Omit<DirectoryFacts, 'identity' | 'tenant'>>;
}

/** A send of one plain message to jo@example.net from an active address on a healthy domain. */
export function sendContext(overrides: Overrides = {}): SendContext {
  const { body, identity, tenant, policy, directory, ...rest } = overrides;
  return {
    now: NOW,
    operation: 'send',
    body: { to: ['jo@example.net'], subject: 'Your booking', text: 'Hello', ...body },
    directory: {
      identity: {
        id: `idn_${ULID}`,
        status: 'active',
        pause_reason: null,
        display_name: 'Acme Desk',
        owner_name: 'Kim Doe',
        owner_email: 'kim@example.org',
        signature_text: null,
        signature_html: null,
        send_policy: {},
        is_system: false,
        ...identity,
      },
      tenant: {
        id: `ten_${ULID}`,
        status: 'active',
        mode: 'live',
        timezone: 'UTC',
        ...tenant,
        policy: { ...DEFAULT_POLICY, ...policy },
      },
      addresses: [address(), platformAddress()],
      checked: [],
      platform_domain: 'agents.example',
      suppressions: {},
      send_block: [],
      send_allow: [],
      local_addresses: [],
      deployment: { ses_configured: true, smtp_enabled: true },
      ...directory,
    },
    can_review_quarantine: false,
    target: null,
    thread: null,
    is_known_contact: () => false,
    has_written_to: () => false,
    ...rest,
  };
}

/** A reply to `target()`, which is valid as it stands. */
export function replyContext(overrides: Overrides = {}): SendContext {
  return sendContext({
    operation: 'reply',
    target: target(),
    thread: thread(),
    ...overrides,
    body: { to: undefined, subject: undefined, ...overrides.body },
  });
}

export function recipient(to: string, field: RecipientField = 'to', name = ''): PlannedRecipient {
  return { address: to, name, field, filtered: null };
}

export function draftOf(context: SendContext, overrides: Partial<SendDraft> = {}): SendDraft {
  return { ...newDraft(context), ...overrides };
}

export const LATE: LateFacts = { composed_bytes: 2_000, reservation: { kind: 'ok' }, lock_held_until: null };

/** Runs one step by itself, on a draft with what the earlier steps would have left there. */
export function runStep(
  step: RequestStep,
  overrides: Overrides = {},
  draft: Partial<SendDraft> = {},
): { refusal: Refusal | null; draft: SendDraft } {
  const context = sendContext(overrides);
  const working = draftOf(context, draft);
  return { refusal: step.check(context, working), draft: working };
}

export function runLate(step: LateStep, late: Partial<LateFacts>, overrides: Overrides = {}): Refusal | null {
  const context = sendContext(overrides);
  return step.check(context, draftOf(context), { ...LATE, ...late });
}

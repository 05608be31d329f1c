import type { Address, Mailbox } from '../address/address.ts';
import type { SuppressionReason } from '../delivery/events.ts';
import type { InboundStatus, OutboundStatus } from '../delivery/status.ts';
import type { AddressId, DomainId, IdentityId, MessageId, TenantId, ThreadId } from '../ids.ts';
import type { InboundKind, OutboundKind, SendBody, SendOperation } from '../message/request.ts';
import type { Policy } from './document.ts';

export type DomainState =
  | 'pending'
  | 'verifying'
  | 'healthy'
  | 'degraded'
  | 'failing'
  | 'suspended'
  | 'removing'
  | 'removed';

export type TransportKind = 'cloudflare' | 'ses' | 'smtp';

export interface DomainFacts {
  id: DomainId;
  name: string;
  state: DomainState;
  is_platform: boolean;
  transport: TransportKind;
  inbound: 'routing' | 'ses' | 'forward' | 'none';
  reply_token: 'subaddress' | 'none';
  sending: boolean;
}

export interface AddressFacts {
  id: AddressId;
  address: Address;
  role: 'primary' | 'alias';
  status: 'pending' | 'active' | 'retiring' | 'retired';
  domain: DomainFacts;
}

export interface IdentityFacts {
  id: IdentityId;
  status: 'active' | 'paused' | 'deleting' | 'deleted';
  pause_reason: 'manual' | 'abuse_threshold' | 'tenant_suspended' | null;
  display_name: string;
  owner_name: string | null;
  owner_email: string | null;
  signature_text: string | null;
  signature_html: string | null;
  send_policy: {
    daily_cap?: number | undefined;
    auto_reply?: 'allowed' | 'denied' | undefined;
    require_known_recipient?: boolean | undefined;
  };
  is_system: boolean;
}

export interface TenantFacts {
  id: TenantId;
  status: 'active' | 'suspended' | 'erasing' | 'erased';
  mode: 'live' | 'test';
  timezone: string;
  /** The effective policy. */
  policy: Policy;
}

/** What the directory (D1) knows at the moment of the request. It travels with the request into the mailbox. */
export interface DirectoryFacts {
  identity: IdentityFacts;
  tenant: TenantFacts;
  addresses: AddressFacts[];
  platform_domain: string;
  /** Recipients that the directory was asked about; what it says of others is not known. */
  checked: Address[];
  /** Per recipient address, why it is on the tenant's suppression list. */
  suppressions: Record<Address, SuppressionReason>;
  /** Entries of the send lists that match a recipient: `user@host` or `@host`. */
  send_block: string[];
  send_allow: string[];
  /** Test tenants only: recipients (without detail) that are active or retiring addresses of this deployment. */
  local_addresses: Address[];
  deployment: { ses_configured: boolean; smtp_enabled: boolean };
}

/** The message a reply, reply-all or forward is about. */
export interface TargetFacts {
  id: MessageId;
  direction: 'inbound' | 'outbound';
  status: InboundStatus | OutboundStatus;
  kind: InboundKind | OutboundKind;
  from: Mailbox | null;
  reply_to: Mailbox[];
  to: Mailbox[];
  cc: Mailbox[];
  known_sender: boolean;
  hop: number;
}

export interface ThreadFacts {
  seq: number;
  id: ThreadId;
  reply_from_address: Address | null;
  fallback_pinned: boolean;
  /** Unix ms of its latest message. */
  last_at: number;
  /** From addresses that outbound messages of this thread have used. */
  used_from: Address[];
  /** Automatic replies since the last one written by a person. */
  automatic_exchanges: number;
  /** Hop count of the message that the new one answers or follows; 0 when none carries one. */
  hop: number;
}

/** Everything a decision about a send may look at. */
export interface SendContext {
  now: number;
  operation: SendOperation;
  body: SendBody;
  directory: DirectoryFacts;
  /** The key may see quarantined mail. */
  can_review_quarantine: boolean;
  /** For reply, reply-all and forward; null when there is no such message. */
  target: TargetFacts | null;
  /** The thread of the target, or the one `thread_id` names; null when new or not there. */
  thread: ThreadFacts | null;
  /** Addresses this mailbox has exchanged mail with. */
  is_known_contact: (address: Address) => boolean;
  /** Addresses this mailbox has written to. */
  has_written_to: (address: Address) => boolean;
}

export type RecipientField = 'to' | 'cc' | 'bcc';

export type FilterReason = SuppressionReason | 'send_block' | 'not_on_allowlist' | 'unknown_recipient';

export interface PlannedRecipient extends Mailbox {
  field: RecipientField;
  /** Why nothing is sent to it, or null. */
  filtered: FilterReason | null;
}

/** Facts of the later steps, known only once the earlier ones have passed. */
export interface LateFacts {
  composed_bytes: number;
  reservation:
    | { kind: 'ok' }
    | { kind: 'denied'; feature: string; granted: number; used: number; resets_at: string | null }
    | { kind: 'cap_reached'; scope: 'identity' | 'tenant'; resets_at: string };
  /** Unix ms until which another message holds the thread, or null when the lock is ours. */
  lock_held_until: number | null;
}

/** What the steps have worked out so far; complete after step 16. */
export interface SendDraft {
  recipients: PlannedRecipient[];
  from: AddressFacts | null;
  headers: { name: string; value: string }[];
  hop: number;
  kind: OutboundKind;
}

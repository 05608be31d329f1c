/** The policy document of a tenant and its defaults (contracts, section "Policy document"). */

export interface Policy {
  identity_daily_send_cap: number;
  tenant_daily_send_cap: number;
  max_recipients: number;
  send_allowlist_only: boolean;
  large_attachments: 'refuse' | 'link';
  link_ttl_hours: number;
  ai_disclosure: { mode: 'none' | 'footer' | 'header'; text: string };
  auto_reply: { allowed: boolean; max_automatic_exchanges: number };
  abuse: { complaint_rate_pause: number; bounce_rate_pause: number };
  domain_fallback: boolean;
  domains: { allow_create_zone: boolean; cloudflare_zones: string[] };
  webhook_text_bytes: number;
  retention: { raw_days: number; message_days: number | null; events_days: number };
  quarantine: { on_auth_fail: boolean; spam_threshold: number };
  inbound: { per_sender_per_hour: number; ses_bounce_retired: boolean };
}

export const DEFAULT_POLICY: Policy = {
  identity_daily_send_cap: 500,
  tenant_daily_send_cap: 5_000,
  max_recipients: 10,
  send_allowlist_only: false,
  large_attachments: 'refuse',
  link_ttl_hours: 72,
  ai_disclosure: { mode: 'none', text: 'Written with help from an AI assistant.' },
  auto_reply: { allowed: true, max_automatic_exchanges: 2 },
  abuse: { complaint_rate_pause: 0.003, bounce_rate_pause: 0.05 },
  domain_fallback: true,
  domains: { allow_create_zone: false, cloudflare_zones: [] },
  webhook_text_bytes: 16_384,
  retention: { raw_days: 90, message_days: null, events_days: 30 },
  quarantine: { on_auth_fail: true, spam_threshold: 0.8 },
  inbound: { per_sender_per_hour: 60, ses_bounce_retired: true },
};

/** A part of a policy as stored: missing fields fall through to the layer below, `null` resets a field. */
export type PolicyPatch = { [K in keyof Policy]?: unknown };

type Tree = Record<string, unknown>;

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Deep merge of a patch over a base. Arrays replace; `null` puts the default back, so that a tenant can undo a value
 * of the deployment; names the base does not know are dropped.
 */
function mergeTree(base: Tree, defaults: Tree, patch: Tree): Tree {
  const out: Tree = { ...base };
  for (const key of Object.keys(base)) {
    if (!Object.hasOwn(patch, key)) continue;
    const value = patch[key];
    if (value === null) out[key] = defaults[key];
    else if (isTree(base[key]) && isTree(defaults[key])) {
      if (isTree(value)) out[key] = mergeTree(base[key], defaults[key], value);
    } else out[key] = value;
  }
  return out;
}

/** Effective policy: the defaults, then the deployment's patch, then the tenant's. */
export function effectivePolicy(deployment: PolicyPatch, tenant: PolicyPatch): Policy {
  const defaults = DEFAULT_POLICY as unknown as Tree;
  const base = mergeTree(defaults, defaults, deployment);
  return mergeTree(base, base, tenant) as unknown as Policy;
}

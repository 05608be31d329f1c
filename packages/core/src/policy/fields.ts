import { parseDomain } from '../address/address.ts';
import { canonicalJson, type Json } from '../canonical-json.ts';
import { type FieldError, invalidRequest, ok, type Result, refuse } from '../result.ts';
import { effectivePolicy, type Policy, type PolicyPatch } from './document.ts';

/**
 * Who may set which field of a policy: `free` any writer, `lower` a tenant up to a ceiling, `platform` the operator
 * alone. Ranges are a matter of the request's schema.
 */
export type PolicyClass = 'free' | 'lower' | 'platform';

export const POLICY_FIELDS = {
  identity_daily_send_cap: 'lower',
  tenant_daily_send_cap: 'lower',
  max_recipients: 'lower',
  send_allowlist_only: 'free',
  large_attachments: 'free',
  link_ttl_hours: 'free',
  'ai_disclosure.mode': 'free',
  'ai_disclosure.text': 'free',
  'auto_reply.allowed': 'lower',
  'auto_reply.max_automatic_exchanges': 'lower',
  'abuse.complaint_rate_pause': 'lower',
  'abuse.bounce_rate_pause': 'lower',
  domain_fallback: 'free',
  'domains.allow_create_zone': 'platform',
  'domains.cloudflare_zones': 'platform',
  webhook_text_bytes: 'free',
  'retention.raw_days': 'lower',
  'retention.message_days': 'free',
  'retention.events_days': 'lower',
  'quarantine.on_auth_fail': 'free',
  'quarantine.spam_threshold': 'free',
  'inbound.per_sender_per_hour': 'lower',
  'inbound.ses_bounce_retired': 'free',
} as const satisfies Record<string, PolicyClass>;

export type PolicyField = keyof typeof POLICY_FIELDS;

const FIELDS = Object.keys(POLICY_FIELDS) as PolicyField[];

/** Values that the operator last set for `lower` fields; no tenant goes above them. */
export type Ceilings = { [F in PolicyField]?: number | boolean };

export type PolicyWriter = 'platform' | 'tenant';

/** A tenant's own layer of policy and the ceilings it stands under. */
export interface StoredPolicy {
  patch: PolicyPatch;
  ceilings: Ceilings;
}

export interface FieldAccess {
  field: PolicyField;
  class: PolicyClass;
  writable: boolean;
  ceiling: number | boolean | null;
  ceiling_source: 'deployment' | 'platform' | null;
}

/** What a writer may do with each field, in the order of the document. */
export function fieldAccess(deployment: PolicyPatch, ceilings: Ceilings, writer: PolicyWriter): FieldAccess[] {
  const base = effectivePolicy(deployment, {});
  return FIELDS.map((field) => accessTo(field, base, ceilings, writer));
}

function accessTo(field: PolicyField, base: Policy, ceilings: Ceilings, writer: PolicyWriter): FieldAccess {
  const row = { field, class: POLICY_FIELDS[field] };
  if (writer === 'platform') return { ...row, writable: true, ceiling: null, ceiling_source: null };
  if (row.class !== 'lower') {
    return { ...row, writable: row.class === 'free', ceiling: null, ceiling_source: null };
  }
  const preset = read(base, field) as number | boolean;
  const set = ceilings[field];
  return set !== undefined && Number(set) < Number(preset)
    ? { ...row, writable: true, ceiling: set, ceiling_source: 'platform' }
    : { ...row, writable: true, ceiling: preset, ceiling_source: 'deployment' };
}

export interface PolicyWrite extends StoredPolicy {
  /** Fields whose stored value or ceiling is another one now; none when the write changes nothing. */
  fields: PolicyField[];
}

/**
 * Applies a change to a tenant's policy, or refuses the whole of it for the first field that the writer may not set so.
 * `null` takes a field (or a group) back to the deployment's value, which for a tenant is a value like any other: it
 * must not lie above the ceiling. What an operator sets on a `lower` field becomes its ceiling.
 */
export function writePolicy(
  deployment: PolicyPatch,
  stored: StoredPolicy,
  change: PolicyPatch,
  writer: PolicyWriter,
): Result<PolicyWrite> {
  const base = effectivePolicy(deployment, {});
  const patch = structure(stored.patch);
  const ceilings: Ceilings = { ...stored.ceilings };
  const fields: PolicyField[] = [];
  for (const [field, given] of named(change)) {
    const access = accessTo(field, base, stored.ceilings, writer);
    if (!access.writable) return refuse('scope_denied', { field, reason: 'not_writable' });
    const { ceiling, ceiling_source } = access;
    if (ceiling !== null && Number(given ?? read(base, field)) > Number(ceiling)) {
      return refuse('scope_denied', { field, reason: 'above_ceiling', ceiling, ceiling_source });
    }
    const value = field === 'domains.cloudflare_zones' && given !== null ? zoneNames(given as string[]) : ok(given);
    if (!value.ok) return value;
    const before = [patch.get(field), ceilings[field]];
    if (value.value === null) patch.delete(field);
    else patch.set(field, value.value);
    if (writer === 'platform' && access.class === 'lower') {
      if (given === null) delete ceilings[field];
      else ceilings[field] = given as number | boolean;
    }
    if (!same(before, [patch.get(field), ceilings[field]])) fields.push(field);
  }
  return ok({ patch: document(patch), ceilings, fields });
}

/** Domains that lose the zone they were connected under, when the list of zones changes from `before` to `after`. */
export function withoutZone<D extends { name: string }>(domains: D[], before: string[], after: string[]): D[] {
  const dropped = before.filter((zone) => !after.includes(zone));
  const under = (name: string) => (zone: string) => name === zone || name.endsWith(`.${zone}`);
  return domains.filter(({ name }) => dropped.some(under(name)) && !after.some(under(name)));
}

function zoneNames(given: string[]): Result<string[]> {
  const names = given.map(parseDomain);
  const faults: FieldError[] = names.flatMap((name, index) =>
    name === undefined
      ? [{ path: `policy.domains.cloudflare_zones[${index}]`, message: 'must be a DNS name of at least two labels' }]
      : [],
  );
  if (faults.length > 0) return invalidRequest(...faults);
  return ok([...new Set(names.filter((name) => name !== undefined))]);
}

type Tree = Record<string, unknown>;

function read(tree: object, field: PolicyField): unknown {
  const [head = '', leaf] = field.split('.');
  const value = (tree as Tree)[head];
  return leaf === undefined ? value : (value as Tree)[leaf];
}

/** Every field that a change names, with null for each field of a group that is null. */
function named(change: PolicyPatch): [PolicyField, unknown][] {
  const tree = change as Tree;
  return FIELDS.flatMap((field): [PolicyField, unknown][] => {
    const [head = '', leaf] = field.split('.');
    const value = tree[head];
    if (leaf === undefined || value === null || value === undefined) return value === undefined ? [] : [[field, value]];
    const inner = (value as Tree)[leaf];
    return inner === undefined ? [] : [[field, inner]];
  });
}

/** A stored patch by field. Nulls of old are the same as nothing. */
function structure(patch: PolicyPatch): Map<PolicyField, unknown> {
  return new Map(named(patch).filter(([, value]) => value !== null));
}

function document(values: ReadonlyMap<PolicyField, unknown>): PolicyPatch {
  const tree: Tree = {};
  for (const [field, value] of values) {
    const [head = '', leaf] = field.split('.');
    if (leaf === undefined) tree[head] = value;
    else tree[head] = { ...(tree[head] as Tree | undefined), [leaf]: value };
  }
  return tree;
}

function same(a: unknown[], b: unknown[]): boolean {
  const text = (values: unknown[]): string => canonicalJson(values.map((value) => value ?? null) as Json);
  return text(a) === text(b);
}

/** How far a key reaches: everything, one tenant, or one identity. */
export const KEY_LEVELS = ['platform', 'tenant', 'identity'] as const;
export type KeyLevel = (typeof KEY_LEVELS)[number];

interface PermissionEntry {
  /** Key levels that may hold the permission; asking for it on another level is `invalid_request`. */
  levels: readonly KeyLevel[];
  /** What it allows, for the documentation. */
  allows: string;
  /** Permissions that come with it. */
  includes?: readonly string[];
}

const PLATFORM: readonly KeyLevel[] = ['platform'];
const TENANT: readonly KeyLevel[] = ['platform', 'tenant'];
const ALL: readonly KeyLevel[] = KEY_LEVELS;

/**
 * Every permission a key can hold. There are no wildcards and no roles: a key lists what it may do.
 *
 * A level that may hold a permission can still be barred from a route (see `levels` in the route table): identity keys
 * use domains and webhooks read-only.
 */
export const PERMISSIONS = {
  'platform:ops': { levels: PLATFORM, allows: 'rotate the signing keys of the deployment and handle dead letters' },
  'tenants:manage': { levels: PLATFORM, allows: 'create, read, change and suspend tenants' },
  'policy:write': { levels: TENANT, allows: 'read and change the policy of a tenant' },
  'suppressions:manage': { levels: TENANT, allows: 'manage suppressions and the allow and block lists' },
  'audit:read': { levels: TENANT, allows: 'read the audit log' },
  'usage:read': { levels: TENANT, allows: 'read usage; tenant and identity keys see their own tenant without it' },
  'senders:read': { levels: TENANT, allows: 'read app senders' },
  'senders:write': { levels: TENANT, allows: 'manage app senders' },
  'identities:read': { levels: ALL, allows: 'read identities and their addresses' },
  'identities:write': { levels: ALL, allows: 'create and change identities and their addresses' },
  'domains:read': { levels: ALL, allows: 'read domains, their records and health' },
  'domains:write': { levels: ALL, allows: 'connect and change domains' },
  'messages:read': { levels: ALL, allows: 'read messages and threads' },
  'messages:send': { levels: ALL, allows: 'send, reply, forward and cancel' },
  'messages:write': { levels: ALL, allows: 'label messages, mark them read, resolve uncertain sends' },
  'attachments:read': { levels: ALL, allows: 'download attachments' },
  'quarantine:review': { levels: ALL, allows: 'see held mail and release it' },
  'webhooks:read': { levels: ALL, allows: 'read webhooks, deliveries and events' },
  'webhooks:manage': { levels: ALL, allows: 'manage webhooks', includes: ['webhooks:read'] },
  'keys:manage': { levels: ALL, allows: 'create, rotate and revoke keys no wider than the own one' },
  'erasure:manage': { levels: ALL, allows: 'erase identities and read erasure requests' },
} as const satisfies Record<string, PermissionEntry>;

export type Permission = keyof typeof PERMISSIONS;

export const PERMISSION_NAMES = Object.keys(PERMISSIONS) as [Permission, ...Permission[]];

/** Whether a key of this level may hold the permission at all. */
export function canHold(level: KeyLevel, permission: Permission): boolean {
  return PERMISSIONS[permission].levels.includes(level);
}

/** Whether a list of permissions grants one, by itself or through one that includes it. */
export function grants(held: readonly Permission[], permission: Permission): boolean {
  return held.some((name) => {
    const entry: PermissionEntry = PERMISSIONS[name];
    return name === permission || entry.includes?.includes(permission) === true;
  });
}

import { policyPatch } from '@pmail/contracts/schemas/policy.ts';
import { parseDomain } from '@pmail/core/address/address.ts';
import { MESSAGE_ID_STRATEGIES, type MessageIdStrategy } from '@pmail/core/cloudflare/message-id.ts';
import type { CloudflareAccount } from '@pmail/core/cloudflare/suppressions.ts';
import { fromBase64 } from '@pmail/core/hash.ts';
import type { PolicyPatch } from '@pmail/core/policy/document.ts';
import type { InboundJob, WebhookJob } from '@pmail/core/queue/jobs.ts';
import { isAwsRegion } from '@pmail/core/ses/names.ts';
import type { SesAccount } from '@pmail/core/ses/send-request.ts';
import type { SnsTopic } from '@pmail/core/sns/message.ts';
import { isLoopbackUrl } from '@pmail/core/webhooks/url.ts';
import type { Deployment } from '@pmail/engine/directory/facts.ts';
import { DEFAULT_WAITS, type Waits, waitsWith } from '@pmail/engine/settings.ts';
import type { OutboundWork } from './consumers/tell.ts';
import type { IdentityMailbox } from './objects/mailbox.ts';
import type { TenantQuota } from './objects/quota.ts';

/** Bindings and variables of the Worker, as wrangler.toml and the secrets give them. */
export interface Env {
  DB: D1Database;
  BLOBS: R2Bucket;
  MAILBOX: DurableObjectNamespace<IdentityMailbox>;
  QUOTA: DurableObjectNamespace<TenantQuota>;
  Q_OUTBOUND: Queue<OutboundWork>;
  Q_INBOUND: Queue<InboundJob>;
  Q_DELIVERY: Queue<unknown>;
  Q_WEBHOOKS: Queue<WebhookJob>;
  RL_API: RateLimit;
  RL_TENANT: RateLimit;
  RL_SEND: RateLimit;
  EMAIL?: SendEmail;
  /** `production` unless set. */
  PM_ENV?: string;
  /** `eu` unless set, or `default`. */
  PM_JURISDICTION?: string;
  PM_LOG_LEVEL?: string;
  PM_API_HOST?: string;
  PM_PLATFORM_DOMAIN?: string;
  PM_DEFAULT_POLICY?: string;
  PM_SES_REGION?: string;
  PM_SES_ACCESS_KEY_ID?: string;
  PM_SES_SECRET_ACCESS_KEY?: string;
  PM_SES_SNS_TOPIC_ARN?: string;
  PM_CF_ACCOUNT_ID?: string;
  PM_CF_API_TOKEN?: string;
  PM_MESSAGE_ID_STRATEGY?: string;
  /** The domain with which Cloudflare makes Message-IDs, where it is known. */
  PM_MESSAGE_ID_DOMAIN?: string;
  /** `off`: domains with a relay of their own cannot send. */
  PM_SMTP_RELAY?: string;
  /** Local runs only: `on` lets relays on this machine through, on any port. */
  PM_RELAY_LOOPBACK?: string;
  PM_COMMIT?: string;
  /** Two DNS-over-HTTPS resolvers, separated by a comma; the second is asked when the first fails. */
  PM_DOH_RESOLVERS?: string;
  /** Local runs only: `on` lets webhook endpoints on this machine through. */
  PM_WEBHOOK_LOOPBACK?: string;
  /** Local runs only: waits of the send path as JSON, in ms. */
  PM_WAITS?: string;
  PM_MASTER_KEY?: string;
  PM_KEY_PEPPER?: string;
  PM_HASH_KEY?: string;
  /** Local runs only: where the simulated provider keeps its own log of what it took. */
  PM_PROVIDER_LOG_URL?: string;
}

export interface Config {
  env: 'production' | 'staging' | 'local';
  jurisdiction: 'eu' | null;
  api_host: string;
  /** Where links to the API point to: scheme, host and, on a local run, the port. */
  api_origin: string;
  platform_domain: string;
  ses_region: string | null;
  /** Null without region and both keys. */
  ses: SesAccount | null;
  /** The topic of delivery events; null when none is set. */
  ses_topic: SnsTopic | null;
  cloudflare_account: CloudflareAccount | null;
  message_ids: { strategy: MessageIdStrategy; domain: string | null };
  deployment: Deployment;
  waits: Waits;
  resolvers: string[];
  webhook_loopback: boolean;
  relay_loopback: boolean;
  provider_log_url: string | null;
  master_key: Uint8Array<ArrayBuffer>;
  key_pepper: Uint8Array<ArrayBuffer>;
  hash_key: Uint8Array<ArrayBuffer>;
  commit: string;
}

/** The settings, or the names of those that are missing or wrong; their values are never shown. */
export type ConfigResult = { ok: true; config: Config } | { ok: false; invalid: string[] };

const DEFAULT_RESOLVERS = 'https://cloudflare-dns.com/dns-query,https://dns.google/dns-query';

const cache = new WeakMap<Env, ConfigResult>();

export function readConfig(env: Env): ConfigResult {
  let result = cache.get(env);
  if (result === undefined) {
    result = parseConfig(env);
    cache.set(env, result);
  }
  return result;
}

/** For code that runs only behind a request or job that has checked the settings. */
export function config(env: Env): Config {
  const result = readConfig(env);
  if (!result.ok) throw new Error(`settings invalid: ${result.invalid.join(', ')}`);
  return result.config;
}

function parseConfig(env: Env): ConfigResult {
  const invalid: string[] = [];
  const secret = (name: 'PM_MASTER_KEY' | 'PM_KEY_PEPPER' | 'PM_HASH_KEY'): Uint8Array<ArrayBuffer> => {
    const bytes = fromBase64(env[name] ?? '');
    if (bytes?.length !== 32) invalid.push(name);
    return bytes ?? new Uint8Array(0);
  };
  const environment = set(env.PM_ENV) ?? 'production';
  const known = environment === 'production' || environment === 'staging' || environment === 'local';
  if (!known) invalid.push('PM_ENV');
  const policy = defaultPolicy(set(env.PM_DEFAULT_POLICY));
  if (policy === undefined) invalid.push('PM_DEFAULT_POLICY');
  const jurisdiction = set(env.PM_JURISDICTION) ?? 'eu';
  if (jurisdiction !== 'eu' && jurisdiction !== 'default') invalid.push('PM_JURISDICTION');
  let waits = DEFAULT_WAITS;
  if (env.PM_WAITS !== undefined && env.PM_WAITS !== '') {
    try {
      // Shorter waits turn slow transports into uncertain sends, so only a local run may have them.
      if (environment !== 'local') throw new Error('PM_WAITS is for local runs');
      waits = waitsWith(JSON.parse(env.PM_WAITS) as Record<string, unknown>);
    } catch {
      invalid.push('PM_WAITS');
    }
  }
  for (const name of ['PM_WEBHOOK_LOOPBACK', 'PM_RELAY_LOOPBACK'] as const) {
    if ((set(env[name]) ?? 'off') !== 'off' && environment !== 'local') invalid.push(name);
  }
  const region = set(env.PM_SES_REGION);
  if (region !== null && !isAwsRegion(region)) invalid.push('PM_SES_REGION');
  const ses = sesAccount(env, region);
  const strategy = MESSAGE_ID_STRATEGIES.find((name) => name === (set(env.PM_MESSAGE_ID_STRATEGY) ?? 'journal'));
  if (strategy === undefined) invalid.push('PM_MESSAGE_ID_STRATEGY');
  const relay = set(env.PM_SMTP_RELAY) ?? 'on';
  if (relay !== 'on' && relay !== 'off') invalid.push('PM_SMTP_RELAY');
  const topic = set(env.PM_SES_SNS_TOPIC_ARN);
  const account = set(env.PM_CF_ACCOUNT_ID);
  const token = set(env.PM_CF_API_TOKEN);
  const apiHost = apiHostOf(env.PM_API_HOST ?? '', environment === 'local');
  if (apiHost === undefined) invalid.push('PM_API_HOST');
  const platformDomain = parseDomain(env.PM_PLATFORM_DOMAIN ?? '');
  if (platformDomain === undefined) invalid.push('PM_PLATFORM_DOMAIN');
  const resolvers = (set(env.PM_DOH_RESOLVERS) ?? DEFAULT_RESOLVERS).split(',').map((url) => url.trim());
  if (resolvers.length !== 2 || !resolvers.every((url) => isResolver(url, environment === 'local'))) {
    invalid.push('PM_DOH_RESOLVERS');
  }
  const config: Config = {
    env: known ? environment : 'production',
    jurisdiction: jurisdiction === 'default' ? null : 'eu',
    api_host: apiHost ?? '',
    api_origin: `${environment === 'local' && isLocal(apiHost ?? '') ? 'http' : 'https'}://${apiHost ?? ''}`,
    platform_domain: platformDomain ?? '',
    ses_region: region,
    ses,
    ses_topic: region === null || topic === null ? null : { region, arn: topic },
    cloudflare_account: account === null || token === null ? null : { id: account, token },
    message_ids: { strategy: strategy ?? 'journal', domain: set(env.PM_MESSAGE_ID_DOMAIN)?.toLowerCase() ?? null },
    deployment: {
      default_policy: policy ?? {},
      ses_configured: ses !== null,
      smtp_enabled: relay === 'on',
    },
    waits,
    resolvers,
    webhook_loopback: environment === 'local' && env.PM_WEBHOOK_LOOPBACK === 'on',
    relay_loopback: environment === 'local' && env.PM_RELAY_LOOPBACK === 'on',
    provider_log_url: environment === 'local' ? (env.PM_PROVIDER_LOG_URL ?? null) : null,
    master_key: secret('PM_MASTER_KEY'),
    key_pepper: secret('PM_KEY_PEPPER'),
    hash_key: secret('PM_HASH_KEY'),
    commit: env.PM_COMMIT ?? 'unknown',
  };
  return invalid.length === 0 ? { ok: true, config } : { ok: false, invalid };
}

/** A setting that is there; an empty one counts as missing. */
function set(value: string | undefined): string | null {
  return value === undefined || value === '' ? null : value;
}

function sesAccount(env: Env, region: string | null): SesAccount | null {
  const access_key_id = set(env.PM_SES_ACCESS_KEY_ID);
  const secret_access_key = set(env.PM_SES_SECRET_ACCESS_KEY);
  if (region === null || access_key_id === null || secret_access_key === null) return null;
  return { region, access_key_id, secret_access_key };
}

/**
 * A host name, in lower case: no scheme and no path, which would stand in every link. Only a local run may have an
 * address or one label, and a port.
 */
function apiHostOf(text: string, local: boolean): string | undefined {
  const host = text.toLowerCase();
  if (!local) return parseDomain(host);
  const url = URL.parse(`http://${host}`);
  // A URL leaves its own port out, so that is put back before the two are compared.
  return url !== null && [url.host, `${url.host}:80`].includes(host) ? host : undefined;
}

/** A local run has no certificate. */
function isLocal(host: string): boolean {
  const url = URL.parse(`http://${host}`);
  return url !== null && isLoopbackUrl(url);
}

/** The deployment's part of every policy, checked like a tenant's; undefined when it is none. */
function defaultPolicy(json: string | null): PolicyPatch | undefined {
  try {
    return policyPatch.safeParse(JSON.parse(json ?? '{}')).data;
  } catch {
    return undefined;
  }
}

/** Names would be looked up in the open over `http`; a local run may ask a resolver of its own machine. */
function isResolver(text: string, local: boolean): boolean {
  const url = URL.parse(text);
  return url?.protocol === 'https:' || (local && url?.protocol === 'http:' && isLoopbackUrl(url));
}

import { USER_AGENT } from '@pmail/core/brand.ts';
import { utf8 } from '@pmail/core/hash.ts';
import type { EventId } from '@pmail/core/ids.ts';
import { isBlockedAddress } from '@pmail/core/net/blocked.ts';
import { judgeStatus, type WebhookError, type WebhookResult } from '@pmail/core/webhooks/outcome.ts';
import { signWebhook } from '@pmail/core/webhooks/signature.ts';
import { endpointUrlFault, isLoopbackUrl } from '@pmail/core/webhooks/url.ts';
import { findEvent } from '../directory/events.ts';
import { type EndpointId, type EndpointRow, findEndpoint } from './endpoints.ts';
import { recordAttempt } from './record.ts';
import type { Work } from './work.ts';
import type { WebhookWorld } from './world.ts';

/** Makes one attempt at a delivery that was taken up, and writes down how it went. */
export async function deliver(world: WebhookWorld, endpointId: EndpointId, work: Work): Promise<void> {
  world.mark('webhook.begun');
  const endpoint = await findEndpoint(world.db, endpointId);
  // Deleted, and with it all that it was still to get.
  if (endpoint === undefined) return;
  const started = world.now();
  const result = endpoint.enabled === 1 ? await attempt(world, endpoint, work.event_id) : failed('endpoint_disabled');
  world.mark('webhook.answered');
  await recordAttempt(world, endpoint, work, { ...result, started, duration_ms: world.now() - started });
}

export function failed(error: WebhookError, httpStatus: number | null = null): WebhookResult {
  return { error, http_status: httpStatus };
}

async function attempt(world: WebhookWorld, endpoint: EndpointRow, eventId: EventId): Promise<WebhookResult> {
  const event = await findEvent(world.db, eventId);
  const text = event === undefined ? null : await world.readEvent(event);
  return text === null ? failed('event_unavailable') : postEvent(world, endpoint, eventId, text);
}

/** One signed POST of an event's bytes. The address is looked at each time, because names move. */
export async function postEvent(
  world: WebhookWorld,
  endpoint: EndpointRow,
  eventId: EventId,
  text: string,
): Promise<WebhookResult> {
  const unreachable = await reachFault(world, endpoint.url);
  if (unreachable !== null) return failed(unreachable);
  const now = world.now();
  const secrets = await world.secrets(endpoint, now);
  if (secrets.length === 0) return failed('secret_unavailable');
  const body = utf8(text);
  const signature = await signWebhook(secrets, eventId, now, body);
  const answer = await world.post(
    endpoint.url,
    { ...signature, 'content-type': 'application/json', 'user-agent': USER_AGENT },
    body,
  );
  return answer.ok ? judgeStatus(answer.status) : failed(answer.error);
}

/** Why a URL must not be called, or null: its form, then every address its host has. */
export async function reachFault(
  world: Pick<WebhookWorld, 'rules' | 'resolve'>,
  url: string,
): Promise<'invalid_url' | 'dns' | 'ssrf_blocked' | null> {
  if (endpointUrlFault(url, world.rules) !== null) return 'invalid_url';
  const parsed = new URL(url);
  if (world.rules.allow_loopback && isLoopbackUrl(parsed)) return null;
  let addresses: string[];
  try {
    addresses = await world.resolve(parsed.hostname.replace(/\.$/, ''));
  } catch {
    return 'dns';
  }
  if (addresses.length === 0) return 'dns';
  return addresses.some(isBlockedAddress) ? 'ssrf_blocked' : null;
}

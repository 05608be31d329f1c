import type { Address } from '@pmail/core/address/address.ts';
import { type CloudflareAccount, suppressionIn, suppressionsPath } from '@pmail/core/cloudflare/suppressions.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import type { OutgoingMessage, ProviderSuppression } from '@pmail/core/transport/types.ts';
import { boundedText } from '../bounded-body.ts';
import { byDeadline } from '../deadline.ts';

export interface SuppressionPorts {
  /** Base of the REST API, without a path. */
  base: string;
  fetch: (
    url: string,
    init: { headers: Record<string, string>; redirect: 'manual'; signal: AbortSignal },
  ) => Promise<Response>;
}

/** Questions at the same time. An invocation has six connections, and a send beside this one may want some. */
const PARALLEL = 4;

/**
 * Asks Cloudflare's REST API which recipients of a message it suppresses. What cannot be asked is not known; what was
 * learned until time runs out counts.
 */
export function suppressionLookup(
  ports: SuppressionPorts,
  account: CloudflareAccount,
): (message: OutgoingMessage) => Promise<ProviderSuppression[]> {
  return async ({ from, to, cc, bcc }) => {
    const found: ProviderSuppression[] = [];
    const waiting = [...to, ...cc, ...bcc];
    const work = async (signal: AbortSignal): Promise<void> => {
      for (let address = waiting.shift(); address !== undefined && !signal.aborted; address = waiting.shift()) {
        const entry = await ask(ports, account, address, from.address).catch(() => null);
        if (entry !== null) found.push(entry);
      }
    };
    await byDeadline(LIMITS.provider_questions_ms_max, (signal) =>
      Promise.all(Array.from({ length: PARALLEL }, () => work(signal))),
    ).catch(() => undefined);
    return [...found];
  };
}

async function ask(
  { base, fetch }: SuppressionPorts,
  account: CloudflareAccount,
  address: Address,
  sender: Address,
): Promise<ProviderSuppression | null> {
  const body = await byDeadline(LIMITS.provider_question_ms_max, async (signal) => {
    const headers = { authorization: `Bearer ${account.token}`, accept: 'application/json' };
    const response = await fetch(`${base}${suppressionsPath(account, address)}`, {
      headers,
      redirect: 'manual',
      signal,
    });
    const text = await boundedText(response, LIMITS.provider_answer_bytes_max);
    return response.status === 200 ? text : '{}';
  });
  return suppressionIn(JSON.parse(body), address, sender);
}

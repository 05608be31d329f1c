import { LIMITS } from '@pmail/core/limits.ts';
import type { PostAnswer } from '@pmail/engine/webhooks/world.ts';

/**
 * One POST to an endpoint. Redirects are answers like others and not followed, no cookie is kept, and of what comes back
 * little is read: enough for the connection to end well, and no more than an endpoint could make us swallow.
 */
export async function post(
  url: string,
  headers: Record<string, string>,
  body: Uint8Array<ArrayBuffer>,
): Promise<PostAnswer> {
  const signal = AbortSignal.timeout(LIMITS.webhook_timeout_ms);
  try {
    const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal });
    await readSome(response);
    return { ok: true, status: response.status };
  } catch (error) {
    return { ok: false, error: signal.aborted ? 'timeout' : faultOf(error) };
  }
}

async function readSome({ body }: Response): Promise<void> {
  if (body === null) return;
  const reader = body.getReader();
  let read = 0;
  try {
    while (read < LIMITS.webhook_read_bytes_max) {
      const { done, value } = await reader.read();
      if (done) return;
      read += value.length;
    }
  } catch {
    // The status has been said; how the rest of the answer ends does not change it.
  }
  await reader.cancel().catch(() => undefined);
}

/** The runtime tells apart little, and only in words. */
function faultOf(error: unknown): 'dns' | 'tls' | 'connect' {
  const text = error instanceof Error ? error.message : '';
  if (/tls|ssl|certificate|handshake/i.test(text)) return 'tls';
  return /dns|resolve|name lookup/i.test(text) ? 'dns' : 'connect';
}

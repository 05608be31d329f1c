import { parseJson } from '@pmail/contracts/validate.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { invalidRequest, ok, type Result, refuse } from '@pmail/core/result.ts';
import { BodyTooLong, boundedBytes } from '@pmail/transports/bounded-body.ts';

/**
 * Reads a JSON body of at most 7 MiB. Reading stops at the bound, whatever the caller said about the length.
 *
 * @param optional an absent body counts as `{}`
 */
export async function readBody(request: Request, optional: boolean): Promise<Result<unknown>> {
  const bytes = await readBytes(request, LIMITS.request_body_bytes_max);
  if (!bytes.ok) return bytes;
  if (bytes.value.length === 0 && optional) return ok({});
  const type = (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (type !== 'application/json' && !/^application\/[a-z0-9.+-]+\+json$/.test(type)) {
    return invalidRequest({ path: '', message: 'must be sent as Content-Type: application/json' });
  }
  const text = decodeUtf8(bytes.value);
  return text === undefined ? invalidRequest({ path: '', message: 'must be UTF-8' }) : parseJson(text);
}

/** Reads a body of at most `max` bytes as text, whatever its content type; undefined when it is larger or no UTF-8. */
export async function readText(request: Request, max: number): Promise<string | undefined> {
  const bytes = await readBytes(request, max);
  return bytes.ok ? decodeUtf8(bytes.value) : undefined;
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** For a route without a body. Clients that always send one may send `{}`; a field would be ignored, so it is refused. */
export async function readNoBody(request: Request): Promise<Result<null>> {
  if (request.method === 'GET' || request.body === null) return ok(null);
  const bytes = await readBytes(request, LIMITS.request_body_bytes_max);
  const text = bytes.ok ? new TextDecoder().decode(bytes.value).trim() : 'too long to be empty';
  if (text === '' || /^\{\s*\}$/.test(text)) return ok(null);
  return invalidRequest({ path: '', message: 'must be empty: this request takes no body' });
}

async function readBytes(request: Request, max: number): Promise<Result<Uint8Array>> {
  const tooLarge = refuse('payload_too_large', { limit: max });
  if (Number(request.headers.get('content-length') ?? 0) > max) return tooLarge;
  try {
    return ok(await boundedBytes(request.body as ReadableStream<Uint8Array> | null, max));
  } catch (error) {
    if (error instanceof BodyTooLong) return tooLarge;
    throw error;
  }
}

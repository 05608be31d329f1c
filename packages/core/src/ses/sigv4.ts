import { hmacSha256, sha256Hex, toHex, utf8 } from '../hash.ts';
import { rfc3339 } from '../time.ts';

/**
 * Signatures of requests to AWS (Signature Version 4).
 *
 * Written here and not taken from a library: the rules stay pure and testable against the published vectors, and the
 * libraries for Workers bring a fetch of their own that repeats a failed request, which a send must never be.
 */

export interface AwsCredentials {
  access_key_id: string;
  secret_access_key: string;
}

export interface AwsScope {
  region: string;
  service: string;
}

/** A request as it will be sent, but for its Authorization header. */
export interface AwsRequest {
  method: string;
  /** As it stands in the URL. */
  path: string;
  /** Names and values before any encoding; `canonicalQuery` of them is what belongs into the URL. */
  query: readonly (readonly [string, string])[];
  /** The headers that are signed, `host` and `x-amz-date` among them. One that stands twice has two values. */
  headers: readonly (readonly [string, string])[];
  body: string;
}

/** Each step of a signature, so that a difference to another signer shows where it begins. */
export interface AwsSignature {
  canonical_request: string;
  string_to_sign: string;
  authorization: string;
}

const ALGORITHM = 'AWS4-HMAC-SHA256';

/** Signs a request. Its `x-amz-date` header must say the same time. */
export async function signAws(
  request: AwsRequest,
  credentials: AwsCredentials,
  { region, service }: AwsScope,
  now: number,
): Promise<AwsSignature> {
  const at = amzDate(now);
  const day = at.slice(0, 8);
  const headers = canonicalHeaders(request.headers);
  const names = headers.map(([name]) => name).join(';');
  const canonical = [
    request.method,
    canonicalPath(request.path),
    canonicalQuery(request.query),
    ...headers.map(([name, value]) => `${name}:${value}`),
    '',
    names,
    await sha256Hex(request.body),
  ].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const toSign = [ALGORITHM, at, scope, await sha256Hex(canonical)].join('\n');
  let key = utf8(`AWS4${credentials.secret_access_key}`);
  for (const part of [day, region, service, 'aws4_request']) key = Uint8Array.from(await hmacSha256(key, part));
  const signature = toHex(await hmacSha256(key, toSign));
  return {
    canonical_request: canonical,
    string_to_sign: toSign,
    authorization: `${ALGORITHM} Credential=${credentials.access_key_id}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  };
}

/** `20261130T090000Z`. */
export function amzDate(now: number): string {
  return rfc3339(now).replace(/[-:]|\.\d{3}/g, '');
}

/** A query as it is signed and as it stands in the URL: encoded, sorted by name, then by value. */
export function canonicalQuery(query: AwsRequest['query']): string {
  return query
    .map(([name, value]): [string, string] => [encode(name), encode(value)])
    .sort(([nameA, valueA], [nameB, valueB]) => order(nameA, nameB) || order(valueA, valueB))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

/** Without `.`, `..` and empty segments, each segment encoded once more than it is in the URL. */
function canonicalPath(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(encode(segment));
  }
  const closed = path.endsWith('/') && kept.length > 0;
  return `/${kept.join('/')}${closed ? '/' : ''}`;
}

/** Names in lower case, each once and sorted; values in the order given, with single blanks and none at the ends. */
function canonicalHeaders(headers: AwsRequest['headers']): [string, string][] {
  const merged = new Map<string, string[]>();
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    merged.set(key, [...(merged.get(key) ?? []), value.trim().replace(/\s+/g, ' ')]);
  }
  return [...merged]
    .map(([name, values]): [string, string] => [name, values.join(',')])
    .sort(([a], [b]) => order(a, b));
}

/** RFC 3986 with nothing but its unreserved characters left as they are. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** By code unit; everything compared here is ASCII. */
function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const encoder = new TextEncoder();

export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text) as Uint8Array<ArrayBuffer>;
}

export function utf8Length(text: string): number {
  return encoder.encode(text).length;
}

export function concatBytes(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

export function toHex(bytes: Uint8Array): string {
  let out = '';
  for (const byte of bytes) out += HEX[byte];
  return out;
}

export async function sha256(data: string | Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const bytes = typeof data === 'string' ? utf8(data) : data;
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
}

/** Lower-case hex of SHA-256 over the UTF-8 bytes of a string, or over the given bytes. */
export async function sha256Hex(data: string | Uint8Array<ArrayBuffer>): Promise<string> {
  return toHex(await sha256(data));
}

/** HMAC-SHA256 (RFC 2104) with the given raw key bytes. */
export async function hmacSha256(
  key: Uint8Array<ArrayBuffer>,
  data: string | Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  const imported = await importHmacKey(key);
  return signHmac(imported, data);
}

/** A key imported once, for callers that sign many values with it. */
export function importHmacKey(key: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
}

export async function signHmac(key: CryptoKey, data: string | Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const bytes = typeof data === 'string' ? utf8(data) : data;
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, bytes));
}

/** Standard base64 (RFC 4648 section 4) of bytes, without line breaks. */
export function toBase64(bytes: Uint8Array): string {
  let binary = '';
  // In slices: one call with millions of arguments overflows the stack.
  for (let i = 0; i < bytes.length; i += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  }
  return btoa(binary);
}

/** Bytes of standard base64; `undefined` when the text is not valid base64 with its padding. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!isBase64(text)) return undefined;
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Whether the text is base64 (RFC 4648 section 4) with padding and without white space. */
export function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** Bytes of unpadded base64url; `undefined` when malformed. Only the one spelling that `toBase64Url` writes is taken. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) return undefined;
  const padded = text.replaceAll('-', '+').replaceAll('_', '/');
  const bytes = fromBase64(padded + '='.repeat((4 - (padded.length % 4)) % 4));
  return bytes !== undefined && toBase64Url(bytes) === text ? bytes : undefined;
}

import { equalBytes } from './compare.ts';
import { fromBase64Url, hmacSha256, toBase64Url, utf8 } from './hash.ts';
import { type AttachmentId, type IdentityId, type MessageId, parseId, type TenantId } from './ids.ts';

/** Signed download links of attachments that were too large to send: who holds the link may read the file, for a while. */

const TAG_BYTES = 16;

export interface LinkKey {
  kid: string;
  secret: Uint8Array<ArrayBuffer>;
}

export interface LinkTarget {
  tenant_id: TenantId;
  identity_id: IdentityId;
  message_id: MessageId;
  attachment_id: AttachmentId;
  /** Unix seconds. */
  expires: number;
}

/** The token of `GET /v1/links/{token}`: payload and the start of its MAC, base64url. */
export async function mintLink(key: LinkKey, target: LinkTarget): Promise<string> {
  const { tenant_id, identity_id, message_id, attachment_id, expires } = target;
  const payload = utf8(`l1:${key.kid}:att:${tenant_id}:${identity_id}:${message_id}:${attachment_id}:${expires}`);
  const tag = (await hmacSha256(key.secret, payload)).subarray(0, TAG_BYTES);
  const token = new Uint8Array(payload.length + TAG_BYTES);
  token.set(payload);
  token.set(tag, payload.length);
  return toBase64Url(token);
}

/** Key id that a token claims, for finding its key; undefined when it is no token at all. */
export function linkKid(token: string): string | undefined {
  const bytes = fromBase64Url(token);
  if (bytes === undefined || bytes.length <= TAG_BYTES) return undefined;
  return new TextDecoder().decode(bytes.subarray(0, -TAG_BYTES)).split(':')[1];
}

/**
 * What a link leads to, or undefined for anything that is not a link of ours in its time. The MAC is checked before any
 * of it is looked at.
 *
 * @param now Unix ms
 */
export async function readLink(key: LinkKey, token: string, now: number): Promise<LinkTarget | undefined> {
  const bytes = fromBase64Url(token);
  if (bytes === undefined || bytes.length <= TAG_BYTES) return undefined;
  const payload = bytes.slice(0, -TAG_BYTES);
  const tag = (await hmacSha256(key.secret, payload)).subarray(0, TAG_BYTES);
  if (!equalBytes(tag, bytes.subarray(-TAG_BYTES))) return undefined;
  const [version, kid, kind, ten = '', idn = '', msg = '', att = '', seconds = ''] = new TextDecoder()
    .decode(payload)
    .split(':');
  const target = {
    tenant_id: parseId('ten', ten),
    identity_id: parseId('idn', idn),
    message_id: parseId('msg', msg),
    attachment_id: parseId('att', att),
    expires: Number(seconds),
  };
  if (version !== 'l1' || kid !== key.kid || kind !== 'att' || !(target.expires * 1_000 > now)) return undefined;
  const { tenant_id, identity_id, message_id, attachment_id, expires } = target;
  if (!tenant_id || !identity_id || !message_id || !attachment_id) return undefined;
  return { tenant_id, identity_id, message_id, attachment_id, expires };
}

import { toHex } from '../hash.ts';
import { type MessageId, ulidOf } from '../ids.ts';

/**
 * The envelope's own id (ENVID, RFC 3461 section 4.4), which relays hand back in reports about it. Everybody who got a
 * message knows its Message-ID; this one only those who carried it, so a report that names it is about our send.
 *
 * @param hmac with a key that never leaves the deployment
 */
export async function envelopeId(hmac: (text: string) => Promise<Uint8Array>, id: MessageId): Promise<string> {
  const proof = await hmac(`envelope:${id}`);
  return `${ulidOf(id)}.${toHex(proof.subarray(0, 16))}`;
}

/** Whether what a report names as its envelope's id is that of a message. */
export async function isEnvelopeIdOf(
  hmac: (text: string) => Promise<Uint8Array>,
  named: string | null,
  id: MessageId,
): Promise<boolean> {
  if (named === null) return false;
  const [own, other] = [await envelopeId(hmac, id), named.trim()];
  let different = own.length ^ other.length;
  for (let at = 0; at < own.length; at++) different |= own.charCodeAt(at) ^ (other.charCodeAt(at) || 0);
  return different === 0;
}

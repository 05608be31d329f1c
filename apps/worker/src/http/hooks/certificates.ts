import { X509Certificate } from 'node:crypto';
import { LIMITS } from '@pmail/core/limits.ts';
import { boundedText } from '@pmail/transports/bounded-body.ts';

/** Public keys of the certificates that sign notifications. An isolate remembers a few of them for a day. */

interface Kept {
  spki: Uint8Array<ArrayBuffer>;
  until: number;
}

const kept = new Map<string, Kept>();

/**
 * The key of the certificate at a URL, which the caller has checked, or undefined when there is no usable certificate.
 * Throws when the server could not be asked, which says nothing against the message.
 */
export async function certificateKey(url: string, now: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const known = kept.get(url);
  if (known !== undefined && now < known.until) return known.spki;
  kept.delete(url);
  const pem = await fetchCertificate(url);
  const found = pem === undefined ? undefined : readCertificate(pem, now);
  if (found === undefined) return undefined;
  // Strangers choose the URLs, so what is remembered has a bound.
  const [oldest] = kept.keys();
  if (oldest !== undefined && kept.size >= LIMITS.sns_certificates_kept_max) kept.delete(oldest);
  kept.set(url, { spki: found.spki, until: Math.min(now + LIMITS.sns_certificate_cache_ms, found.validTo) });
  return found.spki;
}

async function fetchCertificate(url: string): Promise<string | undefined> {
  const signal = AbortSignal.timeout(LIMITS.provider_question_ms_max);
  const response = await fetch(url, { redirect: 'manual', signal });
  if (response.status >= 500) throw new Error(`the certificate's server answered ${response.status}`);
  if (response.status !== 200) {
    await response.body?.cancel();
    return undefined;
  }
  return boundedText(response, LIMITS.sns_certificate_bytes_max).catch((error: unknown) => {
    // Something that large is no certificate; whatever else stops the reading says nothing about it.
    if (error instanceof RangeError) return undefined;
    throw error;
  });
}

function readCertificate(pem: string, now: number): { spki: Uint8Array<ArrayBuffer>; validTo: number } | undefined {
  try {
    const certificate = new X509Certificate(pem);
    const validTo = Date.parse(certificate.validTo);
    const { publicKey } = certificate;
    if (!(Date.parse(certificate.validFrom) <= now && now < validTo) || publicKey.asymmetricKeyType !== 'rsa') {
      return undefined;
    }
    return { spki: Uint8Array.from(publicKey.export({ type: 'spki', format: 'der' })), validTo };
  } catch {
    return undefined;
  }
}

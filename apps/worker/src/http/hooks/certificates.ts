import { X509Certificate } from 'node:crypto';
import { LIMITS } from '@pmail/core/limits.ts';
import { boundedText } from '@pmail/transports/bounded-body.ts';

/** Public keys of the certificates that sign notifications. An isolate remembers a few of them for a day. */

interface Kept {
  spki: Uint8Array<ArrayBuffer>;
  until: number;
}

const kept = new Map<string, Kept>();

/** URLs where a certificate was looked for in vain, apart from the others so that none of these makes room for them. */
const failed = new Map<string, { unanswered: Error | null; until: number }>();

/** What SNS calls its certificates. At any other path of its host, what is answered may be of somebody else's making. */
const CERTIFICATE = /^https:\/\/[^/]+\/SimpleNotificationService-[0-9a-f]+\.pem$/;

/**
 * The key of the certificate at a URL, whose host the caller has checked, or undefined when there is no usable certificate.
 * Throws when the server could not be asked, which says nothing against the message.
 */
export async function certificateKey(url: string, now: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (!CERTIFICATE.test(url)) return undefined;
  const known = kept.get(url);
  if (known !== undefined && now < known.until) return known.spki;
  kept.delete(url);
  const failure = failed.get(url);
  if (failure !== undefined && now < failure.until) {
    if (failure.unanswered !== null) throw failure.unanswered;
    return undefined;
  }
  failed.delete(url);
  const found = await lookUp(url, now);
  if (found === undefined) return undefined;
  keep(kept, LIMITS.sns_certificates_kept_max, url, {
    spki: found.spki,
    until: Math.min(now + LIMITS.sns_certificate_cache_ms, found.validTo),
  });
  return found.spki;
}

/** Asks for the certificate. Strangers name the URLs, so one that led nowhere is remembered for a while. */
async function lookUp(url: string, now: number): Promise<Certificate | undefined> {
  const remember = (unanswered: Error | null): void =>
    keep(failed, LIMITS.sns_certificate_failures_kept_max, url, {
      unanswered,
      until: now + LIMITS.sns_certificate_failure_ms,
    });
  try {
    const pem = await fetchCertificate(url);
    const found = pem === undefined ? undefined : readCertificate(pem, now);
    if (found === undefined) remember(null);
    return found;
  } catch (error) {
    remember(error instanceof Error ? error : new Error('the certificate could not be fetched'));
    throw error;
  }
}

/** Strangers choose the URLs, so what is remembered has a bound. */
function keep<T>(map: Map<string, T>, max: number, url: string, value: T): void {
  const [oldest] = map.keys();
  if (oldest !== undefined && map.size >= max) map.delete(oldest);
  map.set(url, value);
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

interface Certificate {
  spki: Uint8Array<ArrayBuffer>;
  validTo: number;
}

function readCertificate(pem: string, now: number): Certificate | undefined {
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

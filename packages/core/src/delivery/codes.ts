/** Codes in what a mail server said (RFC 5321 section 4.2, RFC 3463). */

export interface Codes {
  /** Such as "550". */
  smtp_code: string | null;
  /** Such as "5.1.1". */
  enhanced_code: string | null;
}

const REPLY = /^\s*([245]\d\d)(?:[\s-]+([245]\.\d{1,3}\.\d{1,3})(?!\.?\d))?(?=[\s-]|$)/;
// The address of a host is four numbers and no code; what begins with 2 is more often a version.
const FAILURE = /(?<![\d.])[45]\.\d{1,3}\.\d{1,3}(?!\.?\d)/;

/** `smtp; 550 5.1.1 unknown` without the type in front. */
export function withoutType(diagnostic: string): string {
  return diagnostic.replace(/^\s*[A-Za-z0-9-]+\s*;\s*/, '');
}

/**
 * Both codes of a reply, of a diagnostic, or of a sentence that quotes them. The reply code is only one at the very
 * beginning: three digits elsewhere are a port or a count.
 */
export function codesIn(text: string): Codes {
  const said = withoutType(text);
  const [, reply, enhanced] = REPLY.exec(said) ?? [];
  return { smtp_code: reply ?? null, enhanced_code: enhanced ?? FAILURE.exec(said)?.[0] ?? null };
}

/**
 * Of two enhanced codes about one failure the one that says more: `5.0.0` only says that it is final.
 *
 * @param stated from the field made for it
 * @param quoted from the words of the server
 */
export function moreExact(stated: string | null, quoted: string | null): string | null {
  return stated === null || (/\.0\.0$/.test(stated) && quoted !== null) ? quoted : stated;
}

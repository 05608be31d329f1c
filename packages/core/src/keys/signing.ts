import { LIMITS } from '../limits.ts';

/** The keys that sign what leaves the service and comes back: one in use per purpose, older ones only verify. */

export const SIGNING_PURPOSES = ['thread', 'link', 'cursor'] as const;
export type SigningPurpose = (typeof SIGNING_PURPOSES)[number];

export function isSigningPurpose(text: string): text is SigningPurpose {
  return (SIGNING_PURPOSES as readonly string[]).includes(text);
}

/** The characters a key id is one of: those of thread tokens, which cannot carry another. */
export const SIGNING_KIDS: readonly string[] = Array.from('0123456789abcdefghjkmnpqrstvwxyz');

/** How long a key that was replaced still verifies, in ms: as long as what it has signed may be in use. */
export const VERIFY_MS: Record<SigningPurpose, number> = {
  thread: LIMITS.thread_key_verify_ms,
  link: LIMITS.link_key_verify_ms,
  cursor: LIMITS.cursor_age_ms_max,
};

/**
 * The id of the next key: the first after the one in use, in a circle, that is not taken. Going round keeps an id that
 * was given up unused for as long as can be.
 *
 * @param taken ids of keys that something signed may still name
 * @returns undefined when every id is taken
 */
export function nextKid(current: string | undefined, taken: ReadonlySet<string>): string | undefined {
  const start = current === undefined ? 0 : SIGNING_KIDS.indexOf(current) + 1;
  return [...SIGNING_KIDS.slice(start), ...SIGNING_KIDS.slice(0, start)].find((kid) => !taken.has(kid));
}

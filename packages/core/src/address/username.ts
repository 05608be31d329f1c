import { LIMITS } from '../limits.ts';
import { ok, type Result, refuse } from '../result.ts';
import { asciiLower } from './address.ts';

/**
 * Rules for the names that callers choose before the @. They run on every route that writes one; the only names outside
 * them are those of the system identity, which the setup writes itself.
 */

/**
 * Which reserved names apply. `platform` is for names that stand alone on the shared domain, those of the tenant with
 * the empty suffix; a name with a suffix behind it, or on a tenant's own domain, is not the operator's role address.
 */
export type DomainClass = 'platform' | 'tenant';

/** Role names of RFC 2142, which on the shared domain would get mail meant for the operator. */
const ROLES = 'info marketing sales support noc security hostmaster usenet news webmaster www uucp ftp';

/** Names that must reach a person (RFC 5321 section 4.5.1, RFC 2142) and names of the mail system itself. */
const EVERYWHERE =
  'postmaster abuse noreply no-reply donotreply do-not-reply mailer-daemon mailerdaemon mail-daemon bounce bounces root ' +
  'admin administrator sysadmin system daemon nobody null devnull listserv majordomo unsubscribe dmarc journal';

const PATTERN = /^owner-|-request$|^pm-/;

const RESERVED: Record<DomainClass, ReadonlySet<string>> = {
  platform: new Set(`${ROLES} ${EVERYWHERE}`.split(' ')),
  tenant: new Set(EVERYWHERE.split(' ')),
};

const RESERVED_FOLDS: Record<DomainClass, ReadonlySet<string>> = {
  platform: new Set([...RESERVED.platform].map(foldName)),
  tenant: new Set([...RESERVED.tenant].map(foldName)),
};

/**
 * The form under which names that look alike are equal: `p0stmaster` and `postmaster`, `rnail` and `mail`.
 *
 * This is the skeleton of UTS #39 for the characters that a stored name can have; of those only the digits zero and
 * one and the letter m have another prototype. Input outside ASCII is refused before its fold would matter, so the
 * tables for the rest of Unicode, when they come, leave every stored fold as it is.
 */
export function foldName(name: string): string {
  return asciiLower(name).replaceAll('0', 'o').replaceAll('1', 'l').replaceAll('m', 'rn');
}

export interface UsernameRules {
  domain_class: DomainClass;
  /** Most characters of the name itself: 24 for a username, 40 for an alias on a tenant's domain. */
  chars_max: number;
  /** What follows the name on the platform domain, such as `.acme`; empty for the default tenant and for aliases. */
  suffix: string;
  /** Field of the request, named in the refusal. */
  path: string;
}

export interface CheckedUsername {
  /** As stored: lower case. */
  username: string;
  fold: string;
}

/**
 * Checks a name in the order in which a caller hears of what is wrong: mistaken for a reserved name, outside ASCII,
 * not of the form, reserved, too long with the suffix. Whether it is free only the directory knows.
 *
 * Names outside ASCII all answer `address_unsupported`. Telling those among them that imitate a reserved name, mix
 * scripts or run right to left (`address_reserved`) needs the Unicode tables of confusables and scripts, which this
 * version does not carry; no such name is accepted either way.
 */
export function checkUsername(input: string, rules: UsernameRules): Result<CheckedUsername> {
  const { domain_class: domainClass, chars_max: max, suffix, path } = rules;
  const fail = (
    code: 'address_reserved' | 'address_unsupported' | 'address_invalid' | 'local_part_too_long',
    message: string,
  ) => refuse(code, { errors: [{ path, message }] });
  const fold = foldName(input);
  if (RESERVED_FOLDS[domainClass].has(fold))
    return fail('address_reserved', 'is reserved or looks like a reserved name');
  if (/[^\x00-\x7f]/.test(input)) return fail('address_unsupported', 'must be ASCII');
  const username = asciiLower(input);
  if (username.length > max || !/^[a-z0-9][a-z0-9._-]*$/.test(username) || /\.\.|\.$/.test(username)) {
    return fail(
      'address_invalid',
      `must be 1 to ${max} letters, digits, dots, underscores and dashes, start with a letter or digit, and have no ` +
        'two dots in a row and none at the end',
    );
  }
  if (RESERVED[domainClass].has(username) || PATTERN.test(username)) return fail('address_reserved', 'is reserved');
  if (username.length + suffix.length > LIMITS.platform_local_part_chars_max) {
    const left = LIMITS.platform_local_part_chars_max - suffix.length;
    return fail('local_part_too_long', `must have at most ${left} characters, because ${suffix} follows it`);
  }
  return ok({ username, fold });
}

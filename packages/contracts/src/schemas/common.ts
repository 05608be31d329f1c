import type { Mailbox } from '@pmail/core/address/address.ts';
import { parseAddress } from '@pmail/core/address/address.ts';
import { codePoints, hasControlCharacter, hasLoneSurrogate } from '@pmail/core/address/names.ts';
import { utf8Length } from '@pmail/core/hash.ts';
import { ID_PREFIXES, type Id, type IdPrefix, idPattern } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { parseRfc3339 } from '@pmail/core/time.ts';
import { z } from 'zod';
import { BOUNDS } from '../bounds.ts';

/**
 * Building blocks of the schemas.
 *
 * Request bodies are checked and never rewritten: what parsing returns equals what was sent, defaults apart. Response
 * schemas describe; they allow unknown fields, because clients must ignore what they do not know.
 */

const EXAMPLE_ULID = '01JABCDEFGHJKMNPQRSTVWXYZ0';

/** An id that looks real, for examples. */
export function exampleId<P extends IdPrefix>(prefix: P): Id<P> {
  return `${prefix}_${EXAMPLE_ULID}`;
}

/** An id of one kind as responses show it. The pattern proves the type, so the cast says no more than the check. */
export function id<P extends IdPrefix>(prefix: P): z.ZodType<Id<P>, Id<P>> {
  const schema = z
    .string()
    .regex(idPattern(prefix))
    .meta({ description: `Id of the ${ID_PREFIXES[prefix]}.` });
  return schema as unknown as z.ZodType<Id<P>, Id<P>>;
}

/**
 * An id in a request. Any string passes: a malformed id is one that names nothing, so it gets the same "not found" as
 * a missing one, and nobody learns from the answer which of the two it was.
 */
export function idInput(prefix: IdPrefix, description = `Id of the ${ID_PREFIXES[prefix]}.`) {
  return z.string().meta({ description, pattern: idPattern(prefix).source });
}

/** A time in a response: RFC 3339, UTC, always with milliseconds. */
export const time = z.string().meta({ format: 'date-time', description: 'RFC 3339 in UTC with milliseconds.' });

/** A time in a request: RFC 3339 with any offset. */
export const timeInput = z
  .string()
  .refine((text) => parseRfc3339(text) !== undefined, 'must be an RFC 3339 date-time with an offset')
  .meta({ format: 'date-time', description: 'RFC 3339 with any offset.' });

/** A UTC calendar day, `YYYY-MM-DD`. */
export const day = z
  .string()
  .refine((text) => /^\d{4}-\d\d-\d\d$/.test(text) && parseRfc3339(`${text}T00:00:00Z`) !== undefined, 'must be a day')
  .meta({ format: 'date', description: 'Calendar day in UTC, YYYY-MM-DD.' });

export const mailbox = z
  .object({
    address: z.string().meta({ description: 'Lower case, domain as A-labels.' }),
    name: z.string().meta({ description: 'Display name, empty when there is none.' }),
  })
  .meta({ id: 'Mailbox' }) satisfies z.ZodType<Mailbox>;

export const LABEL = /^[a-z0-9][a-z0-9_:-]{0,63}$/;

export const label = z.string().regex(LABEL, `must match ${LABEL.source}`).meta({ description: 'A label.' });

/**
 * Runs a cheap check of the raw value before the schema looks inside it. The schema alone would check every member of
 * a list before its length, so a body of a few megabytes of wrong members would cost one error object for each.
 */
function guarded<S extends z.ZodType>(schema: S, fault: (value: unknown) => string | null) {
  const guard = z.preprocess((value, context) => {
    const message = fault(value);
    if (message !== null) context.issues.push({ code: 'custom', message, input: value });
    return value;
  }, schema);
  return guard as unknown as z.ZodType<z.output<S>, z.input<S>>;
}

/** A list of `min` to `max` members; a longer one is refused before its members are checked. */
export function list<S extends z.ZodType>(member: S, max: number, min = 0, description?: string) {
  const bounded = z.array(member).min(min).max(max);
  return guarded(description === undefined ? bounded : bounded.meta({ description }), (value) =>
    Array.isArray(value) && value.length > max ? `must have at most ${max} members` : null,
  );
}

/** A map from any name to text; which names and values are allowed is not a matter of shape. */
export function textMap(description: string) {
  return guarded(z.record(z.string(), z.string()).meta({ description }), (value) => {
    if (typeof value !== 'object' || value === null) return null;
    // The schema would drop this name without a word, and with it what the caller meant to store.
    if (Object.hasOwn(value, '__proto__')) return 'must not have a member named __proto__';
    return Object.keys(value).length > BOUNDS.map_members_max
      ? `must have at most ${BOUNDS.map_members_max} members`
      : null;
  });
}

/** One line of text for people: 1 to `max` Unicode characters, no control characters. */
export function line(max: number, description: string) {
  return z
    .string()
    .superRefine((text, context) => {
      const count = codePoints(text);
      if (count < 1) context.addIssue('must not be empty');
      if (count > max) context.addIssue(`must have at most ${max} characters`);
      if (hasControlCharacter(text)) context.addIssue('must not contain a control character');
      if (hasLoneSurrogate(text)) context.addIssue('must be well-formed Unicode');
    })
    .meta({ description, minLength: 1, maxLength: max });
}

/** Text of any number of lines: `min` to `max` Unicode characters. */
export function prose(max: number, description: string, min = 0) {
  return z
    .string()
    .superRefine((text, context) => {
      const count = codePoints(text);
      if (count < min) context.addIssue('must not be empty');
      if (count > max) context.addIssue(`must have at most ${max} characters`);
      if (hasLoneSurrogate(text)) context.addIssue('must be well-formed Unicode');
    })
    .meta({ description, minLength: min, maxLength: max });
}

/** An email address that is not a recipient, such as the contact of an owner. */
export const contactAddress = z
  .string()
  .superRefine((text, context) => {
    const parsed = parseAddress(text);
    if (!parsed.ok) context.addIssue(parsed.message);
  })
  .meta({ description: 'Email address with an ASCII part before the @.', maxLength: LIMITS.address_chars_max });

/** Metadata of a resource other than a message, whose metadata the sending rules check. */
export const metadataInput = textMap('Your own data; replaces what was stored before.')
  .superRefine((map, context) => {
    const keys = Object.keys(map);
    if (keys.length > LIMITS.metadata_keys_max) {
      context.addIssue(`must have at most ${LIMITS.metadata_keys_max} members`);
      return;
    }
    for (const key of keys) {
      const value = map[key] ?? '';
      const add = (message: string): void => context.addIssue({ code: 'custom', message, path: [key] });
      if (key === '' || codePoints(key) > LIMITS.metadata_key_chars_max) {
        add(`must have a name of 1 to ${LIMITS.metadata_key_chars_max} characters`);
      }
      if (utf8Length(value) > LIMITS.metadata_value_bytes_max) {
        add(`must have at most ${LIMITS.metadata_value_bytes_max} bytes`);
      }
      if (hasLoneSurrogate(key) || hasLoneSurrogate(value)) add('must be well-formed Unicode');
    }
  })
  .meta({ maxProperties: LIMITS.metadata_keys_max });

export const metadata = z.record(z.string(), z.string()).meta({ description: 'Your own data.' });

/** One page of a list. `next_cursor` is null on the last page. */
export function page<S extends z.ZodType>(name: string, member: S) {
  return z
    .object({
      data: z.array(member),
      next_cursor: z
        .string()
        .nullable()
        .meta({ description: 'Pass it as `cursor` for the next page; null at the end.' }),
    })
    .meta({ id: name });
}

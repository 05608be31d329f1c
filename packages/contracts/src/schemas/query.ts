import { parseAddress } from '@pmail/core/address/address.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { parseRfc3339 } from '@pmail/core/time.ts';
import { z } from 'zod';
import { replaceDoc } from './doc.ts';

/**
 * Parameters of the query string. They arrive as text and leave typed: counts as numbers, switches as booleans, times
 * as Unix milliseconds, addresses in their one spelling. What documentation shows is set beside each, since the text form says little.
 */

/** A count between `min` and `max`, decimal digits only. */
export function countParam(min: number, max: number, preset: number, description: string) {
  return z
    .string()
    .transform((text, context) => {
      const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
      if (value >= min && value <= max) return value;
      context.addIssue(`must be a whole number from ${min} to ${max}`);
      return z.NEVER;
    })
    .default(preset)
    .meta(replaceDoc({ type: 'integer', minimum: min, maximum: max, default: preset, description }));
}

/** `true` or `false`. */
export function switchParam(description: string) {
  return z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .meta(replaceDoc({ type: 'boolean', description }));
}

/** A time with any offset, as Unix milliseconds. */
export function timeParam(description: string) {
  return z
    .string()
    .transform((text, context) => {
      const value = parseRfc3339(text);
      if (value !== undefined) return value;
      context.addIssue('must be an RFC 3339 date-time with an offset');
      return z.NEVER;
    })
    .meta(replaceDoc({ type: 'string', format: 'date-time', description }));
}

/** An email address in any spelling, in its one spelling. */
export function addressParam(description: string) {
  return z
    .string()
    .transform((text, context) => {
      const parsed = parseAddress(text);
      if (parsed.ok) return parsed.address;
      context.addIssue(parsed.message);
      return z.NEVER;
    })
    .meta(replaceDoc({ type: 'string', maxLength: LIMITS.address_chars_max, description }));
}

/** Some of a few names, separated by commas. */
export function namesParam<const T extends readonly [string, ...string[]]>(names: T, description: string) {
  return z
    .string()
    .transform((text, context): T[number][] => {
      const given = [...new Set(text.split(','))];
      if (given.every((name) => names.includes(name))) return given;
      context.addIssue(
        names.length > 10 ? 'must be known names separated by commas' : `must be some of ${names.join(', ')}`,
      );
      return z.NEVER;
    })
    .meta(replaceDoc({ type: 'array', items: { type: 'string', enum: [...names] }, description }));
}

/** What every list takes. */
export const pagination = {
  limit: countParam(1, LIMITS.page_size_max, LIMITS.page_size_default, 'Members of a page.'),
  cursor: z
    .string()
    .optional()
    .meta({ description: '`next_cursor` of the page before, with the same filters. It works for 24 hours.' }),
};

import { type FieldError, invalidRequest, ok, type Result } from '@pmail/core/result.ts';
import type { z } from 'zod';
import { BOUNDS } from './bounds.ts';
import { duplicateKey } from './duplicate-keys.ts';
import { jsonShapeFault } from './json-shape.ts';

/**
 * From zod's issues to the fields of `invalid_request`. Messages are of the form "must be a string" and never repeat
 * what was sent: a value can be a secret or megabytes long, and logs and answers are read by others.
 */

type Issue = z.core.$ZodIssue;

const NOUNS: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
};

function typeMessage(expected: string, input: unknown): string {
  if (input === undefined) return 'is required';
  return `must be ${NOUNS[expected] ?? expected}`;
}

function boundMessage(issue: z.core.$ZodRawIssue<z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig>): string {
  const counted = issue.origin === 'array' || issue.origin === 'string';
  if (counted && issue.code === 'too_small' && issue.minimum === 1) return 'must not be empty';
  const [word, bound] = issue.code === 'too_small' ? ['least', issue.minimum] : ['most', issue.maximum];
  if (!counted) return `must be at ${word} ${bound}`;
  return `must have at ${word} ${bound} ${issue.origin === 'array' ? 'members' : 'characters'}`;
}

/** Words a schema's complaint as a predicate of the field. Messages that a schema brings itself stay as they are. */
const describe: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      return typeMessage(issue.expected, issue.input);
    case 'invalid_value':
      if (issue.input === undefined) return 'is required';
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`;
    case 'unrecognized_keys':
      return 'is unknown';
    case 'too_small':
    case 'too_big':
      return boundMessage(issue);
    case 'custom':
    case 'invalid_element':
    case 'invalid_format':
    case 'invalid_key':
    case 'invalid_union':
    case 'not_multiple_of':
      return 'is not valid';
  }
};

/** Adds one step of a path: `to`, 3, `address` make `to[3].address`. */
function join(base: string, path: readonly PropertyKey[]): string {
  let out = base;
  for (const step of path) {
    if (typeof step === 'number') out += `[${step}]`;
    else out += out === '' ? String(step) : `.${String(step)}`;
  }
  return out;
}

/** The caller's own names can be in a path, so it is cut before it is sent back. */
function bounded(path: string): string {
  return path.length <= BOUNDS.field_path_chars_max ? path : `${path.slice(0, BOUNDS.field_path_chars_max)}…`;
}

/**
 * The fields that a failed parse complains about, at most fifty. A path is dotted with list members in brackets
 * (`to[3].address`), an unknown field stands at its own path, and the empty path is the body itself.
 */
export function fieldErrors(error: z.ZodError): FieldError[] {
  const out: FieldError[] = [];
  collect(error.issues, '', out);
  return out.slice(0, BOUNDS.field_errors_max);
}

function collect(issues: readonly Issue[], base: string, out: FieldError[]): void {
  for (const issue of issues) {
    if (out.length >= BOUNDS.field_errors_max) return;
    const path = join(base, issue.path);
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys.slice(0, BOUNDS.field_errors_max)) {
        out.push({ path: bounded(join(path, [key])), message: issue.message });
      }
    } else if (issue.code === 'invalid_union') {
      collectUnion(issue, path, out);
    } else {
      out.push({ path: bounded(path), message: issue.message });
    }
  }
}

/**
 * A union complains once per branch. The branches that wanted another type of value say nothing useful about a value
 * of the right type, so the complaint is that of the branch that came furthest; only when every branch wanted another
 * type is the answer the list of types.
 */
function collectUnion(issue: z.core.$ZodIssueInvalidUnion, path: string, out: FieldError[]): void {
  const inside = issue.errors.filter((branch) => !branch.some(isWrongType));
  const [best] = inside.sort((a, b) => a.length - b.length);
  if (best !== undefined && best.length > 0) {
    collect(best, path, out);
    return;
  }
  const types = issue.errors.flat().map((inner) => (isWrongType(inner) ? NOUNS[inner.expected] : undefined));
  const known = [...new Set(types.filter((noun) => noun !== undefined))];
  out.push({ path: bounded(path), message: known.length > 0 ? `must be ${known.join(' or ')}` : issue.message });
}

function isWrongType(issue: Issue): issue is z.core.$ZodIssueInvalidType {
  return issue.code === 'invalid_type' && issue.path.length === 0;
}

function parse<S extends z.ZodType>(schema: S, value: unknown): Result<z.output<S>> {
  const parsed = schema.safeParse(value, { error: describe });
  return parsed.success ? ok(parsed.data) : invalidRequest(...fieldErrors(parsed.error));
}

/**
 * Checks the body of a request, already parsed from JSON. Keep the raw value too: fingerprints are made over what was
 * received.
 */
export function parseBody<S extends z.ZodType>(schema: S, body: unknown): Result<z.output<S>> {
  return parse(schema, body);
}

/** Checks a query string (a `URLSearchParams`, say). A parameter given twice is refused rather than picked from. */
export function parseQuery<S extends z.ZodObject>(
  schema: S,
  query: Iterable<readonly [string, string]>,
): Result<z.output<S>> {
  // Without a prototype, so that a parameter of any name is data.
  const given = Object.create(null) as Record<string, string>;
  const twice: FieldError[] = [];
  for (const [name, value] of query) {
    // What no schema knows is refused as unknown, or means nothing.
    if (Object.hasOwn(given, name) && Object.hasOwn(schema.shape, name))
      twice.push({ path: bounded(name), message: 'is given more than once' });
    given[name] = value;
  }
  if (twice.length > 0) return invalidRequest(...twice.slice(0, BOUNDS.field_errors_max));
  return parse(schema, given);
}

/** `400 invalid_request` for a body that is too much to be parsed, not JSON at all, or has a key twice in one object. */
export function parseJson(text: string): Result<unknown> {
  const fault = jsonShapeFault(text);
  if (fault !== undefined) return invalidRequest({ path: '', message: fault });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return invalidRequest({ path: '', message: 'must be JSON' });
  }
  const twice = duplicateKey(text);
  if (twice === undefined) return ok(value);
  return invalidRequest({ path: bounded(join('', twice)), message: 'is given more than once' });
}

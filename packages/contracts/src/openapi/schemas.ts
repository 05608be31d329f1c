import { z } from 'zod';
import { replacementOf } from '../schemas/doc.ts';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

/**
 * JSON Schema of the zod schemas. OpenAPI 3.1 takes JSON Schema 2020-12, which zod writes itself; what is done here is
 * only to give every named schema its place under `#/components/schemas` and to make the result pleasant to read.
 */

const REF = '#/components/schemas/';

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Members in the order a reader wants them; the others follow as they came. */
const ORDER = ['$ref', 'type', 'const', 'enum', 'format', 'pattern', 'description'];

function ordered(schema: JsonObject): JsonObject {
  const out: JsonObject = {};
  for (const name of [...ORDER.filter((key) => key in schema), ...Object.keys(schema)]) {
    const value = schema[name];
    if (value !== undefined) out[name] = value;
  }
  return out;
}

/** A type or null, in the short form where the type is a plain one. */
function nullable(schema: JsonObject): JsonObject {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [inner, none] = anyOf;
  if (!isObject(inner) || !isObject(none) || none['type'] !== 'null' || typeof inner['type'] !== 'string') {
    return schema;
  }
  const merged: JsonObject = { ...inner, ...rest, type: [inner['type'], 'null'] };
  if (Array.isArray(inner['enum'])) merged['enum'] = [...inner['enum'], null];
  return merged;
}

/** Drops what zod adds for itself and shortens the rest, at every level. */
function tidy(schema: JsonObject): JsonObject {
  const { $schema: _dialect, $id: _id, id: _name, propertyNames: _any, ...kept } = schema;
  const replaced = replacementOf(kept) as JsonObject | undefined;
  if (replaced !== undefined) return ordered(replaced);
  const out: JsonObject = {};
  for (const [name, value] of Object.entries(kept)) {
    if (name === 'maximum' && value === Number.MAX_SAFE_INTEGER) continue;
    if (name === 'minimum' && value === Number.MIN_SAFE_INTEGER) continue;
    if (name === 'minItems' && value === 0) continue;
    if (name === 'properties' && isObject(value)) {
      out[name] = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, tidyAny(inner)]));
    } else if (name === 'items' || name === 'additionalProperties') out[name] = tidyAny(value);
    else if (name === 'anyOf' && Array.isArray(value)) out[name] = value.map(tidyAny);
    else out[name] = value;
  }
  return ordered(nullable(out));
}

function tidyAny(value: Json): Json {
  return isObject(value) ? tidy(value) : value;
}

/** The name a schema was given with `.meta({ id })`. */
export function nameOf(schema: z.ZodType): string | undefined {
  return z.globalRegistry.get(schema)?.id;
}

/** A reference to a named schema; bodies and answers must all have names, so that clients can be generated. */
export function refTo(schema: z.ZodType): JsonObject {
  const name = nameOf(schema);
  if (name === undefined) throw new Error('a body or answer has a schema without a name');
  return { $ref: `${REF}${name}` };
}

/** JSON Schema of one schema that has no name, such as a parameter. */
export function inlineSchema(schema: z.ZodType): JsonObject {
  return tidy(z.toJSONSchema(schema, { io: 'input' }) as JsonObject);
}

/** Every named schema by name. Bodies are described as they are sent, so `input` is the side that counts. */
export function namedSchemas(): Map<string, JsonObject> {
  const { schemas } = z.toJSONSchema(z.globalRegistry, { uri: (name) => REF + name, io: 'input' });
  return new Map(Object.entries(schemas).map(([name, schema]) => [name, tidy(schema as JsonObject)]));
}

/** Names of the schemas that a part of the document refers to, directly or through others. */
export function reachable(root: Json, schemas: ReadonlyMap<string, JsonObject>): string[] {
  const seen = new Set<string>();
  const visit = (value: Json | undefined): void => {
    if (Array.isArray(value)) for (const inner of value) visit(inner);
    else if (isObject(value)) {
      for (const [name, inner] of Object.entries(value)) {
        if (name !== '$ref' || typeof inner !== 'string' || !inner.startsWith(REF)) visit(inner);
        else if (!seen.has(inner.slice(REF.length))) {
          seen.add(inner.slice(REF.length));
          visit(schemas.get(inner.slice(REF.length)));
        }
      }
    }
  };
  visit(root);
  return [...seen].sort();
}

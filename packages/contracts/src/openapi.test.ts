import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERRORS } from '@pmail/core/errors.ts';
import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { generatedFiles } from '../scripts/files.ts';
import { EXAMPLES } from './openapi/examples.ts';
import { operationId } from './openapi/operation.ts';
import type { Json, JsonObject } from './openapi/schemas.ts';
import { buildOpenApi } from './openapi.ts';
import { errorsOf, ROUTE_IDS, routeSpec } from './routes.ts';
import { wireError } from './schemas/error.ts';

const document = buildOpenApi();

/** Calls back for every object in the document, with the path to it. */
function walk(value: Json | undefined, visit: (node: JsonObject, path: string) => void, path = '#'): void {
  if (Array.isArray(value)) for (const [index, inner] of value.entries()) walk(inner, visit, `${path}/${index}`);
  else if (typeof value === 'object' && value !== null) {
    visit(value, path);
    for (const [name, inner] of Object.entries(value)) walk(inner, visit, `${path}/${name}`);
  }
}

function at(pointer: string): Json | undefined {
  const steps = pointer
    .slice(2)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return steps.reduce<Json | undefined>((node, step) => (node as JsonObject | undefined)?.[step], document);
}

function operationOf(id: (typeof ROUTE_IDS)[number]): JsonObject {
  const { path, method } = routeSpec(id);
  return ((document['paths'] as JsonObject)[path] as JsonObject)[method.toLowerCase()] as JsonObject;
}

describe('the document', () => {
  test('is valid OpenAPI 3.1', async () => {
    const result = await new Validator().validate(structuredClone(document));
    expect(result.errors ?? []).toEqual([]);
    expect(result.valid).toBe(true);
  });

  test('resolves every reference and uses every component', () => {
    const used = new Set<string>();
    walk(document, ({ $ref }) => {
      if (typeof $ref !== 'string') return;
      expect(at($ref), $ref).toBeDefined();
      used.add($ref);
    });
    for (const kind of ['schemas', 'responses', 'parameters', 'headers', 'examples']) {
      for (const name of Object.keys(at(`#/components/${kind}`) as JsonObject)) {
        expect(used, `${kind} ${name}`).toContain(`#/components/${kind}/${name}`);
      }
    }
  });

  test('holds nothing of the tools that made it', () => {
    expect(JSON.stringify(document)).not.toMatch(/x-replacement|\$schema|\$id|\$defs|9007199254740991/);
  });

  test('is the same every time', () => {
    expect(JSON.stringify(buildOpenApi())).toBe(JSON.stringify(document));
  });

  test('has tags that it describes', () => {
    const tags = (document['tags'] as JsonObject[]).map(({ name }) => name);
    expect(new Set(ROUTE_IDS.map((id) => routeSpec(id).tag))).toEqual(new Set(tags));
  });
});

describe('operations', () => {
  test('have ids of their own', () => {
    const ids = ROUTE_IDS.map(operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z]+$/);
  });

  test.each(ROUTE_IDS)('%s is complete', (id) => {
    const operation = operationOf(id);
    expect(operation).toMatchObject({
      operationId: operationId(id),
      summary: expect.stringMatching(/\S/),
      tags: [expect.stringMatching(/\S/)],
    });
    const { path } = routeSpec(id);
    const parameters = operation['parameters'] as JsonObject[];
    const inPath = parameters.filter((parameter) => parameter['in'] === 'path').map((parameter) => parameter['name']);
    expect(inPath).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
    const responses = operation['responses'] as JsonObject;
    for (const code of errorsOf(routeSpec(id))) {
      const answer = responses[String(ERRORS[code].status)] as JsonObject;
      const whole = typeof answer['$ref'] === 'string' ? at(answer['$ref']) : answer;
      expect(JSON.stringify(whole), code).toContain(`#/components/examples/${code}`);
    }
  });
});

describe('examples', () => {
  test.each(ROUTE_IDS)('of %s fit its schemas', (id) => {
    const { body, success } = routeSpec(id);
    const { body: bodyExample, answers = {} } = EXAMPLES[id] ?? {};
    const fits = (schema: z.ZodType | null | undefined, value: unknown): void => {
      // Equal, so that an example shows no field that the schema does not have.
      expect(schema?.parse(value)).toEqual(value);
    };
    if (body !== null) fits(body, bodyExample);
    for (const [status, value] of Object.entries(answers)) {
      fits(success.find((answer) => String(answer.status) === status)?.schema, value);
    }
  });

  test('of errors are error answers', () => {
    for (const [code, example] of Object.entries(at('#/components/examples') as JsonObject)) {
      const { value } = example as { value: Json };
      expect(wireError.parse(value)).toEqual(value);
      expect(value).toMatchObject({ error: { code } });
    }
  });
});

test.each(generatedFiles().map(({ path, text }) => [path, text] as const))('%s is fresh', (path, text) => {
  const stored = readFileSync(join(import.meta.dirname, '../../..', path), 'utf8');
  expect(stored === text, 'stale: run node packages/contracts/scripts/generate.ts').toBe(true);
});

import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sha256Hex } from '../hash.ts';
import { type AwsRequest, amzDate, canonicalQuery, signAws } from './sigv4.ts';
import {
  VECTOR_CREDENTIALS,
  VECTOR_HOST,
  VECTOR_SCOPE,
  VECTOR_TIME,
  VECTORS,
  type Vector,
} from './sigv4-vectors.fixture.ts';

const VECTOR_NOW = Date.UTC(2015, 7, 30, 12, 36);

function requestOf({ request, headers = [], body = '' }: Vector): AwsRequest {
  const [, method = '', path = '', query = ''] = /^(\S+) ([^?]*)\??(.*)$/.exec(request) ?? [];
  const pairs = query === '' ? [] : query.split('&').map((pair) => pair.split('='));
  return {
    method,
    path,
    query: pairs.map(([name = '', value = '']): [string, string] => [name, value]),
    headers: [...headers, ['Host', VECTOR_HOST], ['X-Amz-Date', VECTOR_TIME]],
    body,
  };
}

describe("AWS's vectors", () => {
  test('are all there', () => {
    expect(new Set(VECTORS.map(({ name }) => name)).size).toBe(31);
    expect(amzDate(VECTOR_NOW)).toBe(VECTOR_TIME);
  });

  test.each(VECTORS)('$name', async (vector) => {
    const signed = await signAws(requestOf(vector), VECTOR_CREDENTIALS, VECTOR_SCOPE, VECTOR_NOW);
    const [path, query, ...headers] = vector.canonical;
    const lines = signed.canonical_request.split('\n');
    expect(lines.slice(0, 3)).toEqual([vector.request.split(' ')[0], path, query]);
    const own = lines.slice(3, -3).filter((line) => !/^(host|x-amz-date):/.test(line));
    expect(own).toEqual(headers);
    expect(await sha256Hex(signed.canonical_request)).toBe(vector.hash);
    expect(signed.string_to_sign).toBe(
      ['AWS4-HMAC-SHA256', VECTOR_TIME, '20150830/us-east-1/service/aws4_request', vector.hash].join('\n'),
    );
    expect(signed.authorization).toContain(`Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, `);
    expect(signed.authorization).toContain(`SignedHeaders=${lines.at(-2)}, `);
    expect(signed.authorization).toContain(`Signature=${vector.signature}`);
  });
});

const NOW = Date.UTC(2026, 10, 30, 9, 5, 7);
const CREDENTIALS = { access_key_id: 'AKIAIOSFODNN7EXAMPLE', secret_access_key: 'secret/of+this=test' };

/** What the SDK's signer writes for the same request. */
async function oracle(request: AwsRequest, region: string): Promise<string | undefined> {
  const signer = new SignatureV4({
    service: 'ses',
    region,
    sha256: Sha256,
    credentials: { accessKeyId: CREDENTIALS.access_key_id, secretAccessKey: CREDENTIALS.secret_access_key },
  });
  const query: Record<string, string[]> = {};
  for (const [name, value] of request.query) query[name] = [...(query[name] ?? []), value];
  const signed = await signer.sign(
    {
      method: request.method,
      protocol: 'https:',
      hostname: 'email.example',
      path: request.path,
      query,
      headers: Object.fromEntries(request.headers),
      body: request.body,
    },
    { signingDate: new Date(NOW) },
  );
  return signed.headers['authorization'];
}

/** The SDK adds these to every request, so ours have them too. */
async function signedHeaders(body: string): Promise<[string, string][]> {
  return [
    ['host', 'email.eu-west-1.amazonaws.com'],
    ['content-type', 'application/json'],
    ['x-amz-date', amzDate(NOW)],
    ['x-amz-content-sha256', await sha256Hex(body)],
  ];
}

describe('the signer of the AWS SDK agrees', () => {
  test('about the request of a send', async () => {
    const body = '{"Content":{"Raw":{"Data":"RnJvbQ=="}}}';
    const request = {
      method: 'POST',
      path: '/v2/email/outbound-emails',
      query: [],
      headers: await signedHeaders(body),
      body,
    };
    const { authorization } = await signAws(request, CREDENTIALS, { region: 'eu-west-1', service: 'ses' }, NOW);
    expect(authorization).toBe(await oracle(request, 'eu-west-1'));
  });

  const text = fc.string({ unit: 'grapheme' }).map((value) => value.toWellFormed());
  // What may stand in a URL; the SDK takes a path apart before it encodes, so a per cent sign has to be whole.
  const segment = fc.stringMatching(/^[A-Za-z0-9._~@:!$&'()*+,;=-]{1,12}$/).filter((part) => !/^\.+$/.test(part));

  test.each(['us-east-1', 'eu-west-1', 'ap-southeast-2'])('about any request in %s', async (region) => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('GET', 'POST', 'PUT', 'DELETE'),
        fc.array(segment, { maxLength: 4 }),
        fc.uniqueArray(fc.tuple(text, text), { maxLength: 4, selector: ([name]) => name }),
        text,
        async (method, segments, query, body) => {
          const path = `/${segments.join('/')}`;
          // The SDK keeps a query as a plain object, which has names of its own.
          const named = query.filter(([name]) => name !== '' && !(name in {}));
          const request = { method, path, query: named, headers: await signedHeaders(body), body };
          const { authorization } = await signAws(request, CREDENTIALS, { region, service: 'ses' }, NOW);
          expect(authorization).toBe(await oracle(request, region));
        },
      ),
      { numRuns: 60 },
    );
  });
});

test('a query is written as it is signed', () => {
  const query: [string, string][] = [
    ['b', "x y+z&=*'()!"],
    ['a', '2'],
    ['a', '10'],
    ['ሴ', ''],
  ];
  expect(canonicalQuery(query)).toBe('%E1%88%B4=&a=10&a=2&b=x%20y%2Bz%26%3D%2A%27%28%29%21');
});

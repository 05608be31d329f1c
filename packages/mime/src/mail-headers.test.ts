import { expect, it } from 'vitest';
import { readHeaders } from './mail-headers.ts';

function read(from: string): unknown {
  const {
    from: first,
    multiple_from,
    to,
  } = readHeaders(['from', 'to'].map((key) => ({ key, originalKey: key, value: from })));
  return { first, multiple_from, all: to };
}

const JO = { address: 'jo@example.net', name: 'Jo' };
const KIM = { address: 'kim@example.org', name: '' };

it.each([
  ['encoded as a whole', '=?utf-8?B?Sm8gPGpvQGV4YW1wbGUubmV0Pg==?=', [JO], false],
  ['two encoded as a whole', '=?utf-8?Q?Jo_=3Cjo=40example.net=3E=2C_kim=40example.org?=', [JO, KIM], true],
  ['an encoded name over two words', '=?utf-8?B?Sg==?= =?utf-8?B?bw==?= <jo@example.net>', [JO], false],
  ['an encoded name alone', '=?utf-8?Q?Jo?=', [], false],
  ['a group in a group', 'a: b: Jo <jo@example.net>;; kim@example.org', [JO, KIM], true],
  ['a group that never ends', 'x, Team: kim@example.org', [KIM], false],
  ['what only looks like a group', '"J:;" (a:b;) <jo@example.net>', [{ ...JO, name: 'J:;' }], false],
  ['a question mark', '"Jo?" <j?o@example.net>', [{ address: 'j?o@example.net', name: 'Jo?' }], false],
  ['what others may take for one', '=?utf-8?Q?=3Cboss=40bank.example=3E?= x, kim@example.org', [KIM], true],
])('mailboxes: %s', (_what, value, all, multiple_from) => {
  expect(read(value)).toEqual({ first: all[0] ?? null, multiple_from, all });
});

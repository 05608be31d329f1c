import { createIdFactory, parseId } from '@pmail/core/ids.ts';
import { parseApiKey } from '@pmail/core/keys/api-key.ts';
import { linkKid, mintLink, readLink } from '@pmail/core/links.ts';
import { checkThreadToken, mintThreadToken, tokenKid } from '@pmail/core/threading/token.ts';
import { parseRfc3339, rfc3339 } from '@pmail/core/time.ts';
import { type Fuzzer, fuzzer, must } from '@pmail/testkit/fuzz/fuzzer.ts';
import { foreignText } from '@pmail/testkit/fuzz/inputs.ts';
import fc from 'fast-check';

const NOW = 1_790_000_000_000;
const secret = new Uint8Array(32).fill(7);
const newId = createIdFactory(() => 0.4);
const identity = newId('idn', NOW);
const thread = { kid: '1', secret };
const tokens = await Promise.all([1, 33, 2 ** 40].map((seq) => mintThreadToken(thread, identity, seq)));

export const threadTokens: Fuzzer = fuzzer(
  'thread tokens',
  foreignText([...tokens, 'tag', 't11.00000000'], ['.', 't', 'i', 'l', 'o', 'u', 'Z', '0', '+']),
  async (detail) => {
    const checked = await checkThreadToken([thread], identity, detail);
    must(checked.kind !== 'valid' || tokens.includes(detail), 'only what was made is believed');
    if (checked.kind === 'valid') must((await mintThreadToken(thread, identity, checked.seq)) === detail, 'one form');
    must((tokenKid(detail) === undefined) === (checked.kind === 'absent'), 'the shape is judged once');
    must(checked.kind === 'valid' || !tokens.includes(detail), 'what was made is believed');
    return checked.kind === 'valid' || checked.kind;
  },
);

const target = {
  tenant_id: newId('ten', NOW),
  identity_id: identity,
  message_id: newId('msg', NOW),
  attachment_id: newId('att', NOW),
  expires: NOW / 1_000 + 3_600,
};
const link = { kid: 'k', secret };
const links = await Promise.all([mintLink(link, target), mintLink(link, { ...target, expires: 1 })]);

export const signedLinks: Fuzzer = fuzzer(
  'signed links',
  foreignText(links, ['-', '_', '=', '+', '/', ':']),
  async (token) => {
    const kid = linkKid(token);
    const read = await readLink(link, token, NOW);
    must(read !== undefined || token !== links[0], 'what was made is believed');
    if (read === undefined) return token === links[1] ? 'its time is over' : kid === undefined ? 'no link' : 'not ours';
    must(JSON.stringify(read) === JSON.stringify(target), 'a link leads where it was made for');
    return true;
  },
);

export const names: Fuzzer = fuzzer(
  'ids, keys and times',
  fc.oneof(
    foreignText(
      [target.message_id, identity, 'msg_7ZZZZZZZZZZZZZZZZZZZZZZZZZ', `pm_live_${'a'.repeat(40)}`],
      ['_', 'O', 'ü'],
    ),
    foreignText(
      ['2026-11-30T08:41:00.000Z', '2026-11-30T08:41:00+01:00', '1969-12-31t23:59:60z'],
      ['T', '+24:00', '.', '99'],
    ),
  ),
  (input) => {
    const id = parseId('msg', input);
    must(id === undefined || /^msg_[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id), 'an id is in its one form');
    parseApiKey(input);
    const time = parseRfc3339(input);
    must(time === undefined || parseRfc3339(rfc3339(time)) === time, 'a time is written and read alike');
    return id !== undefined || time !== undefined;
  },
);

import {
  detailOf,
  domainOf,
  localPartOf,
  parseAddress,
  parseDomain,
  withoutDetail,
} from '@pmail/core/address/address.ts';
import { checkUsername } from '@pmail/core/address/username.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { type Fuzzer, fuzzer, must } from '@pmail/testkit/fuzz/fuzzer.ts';
import { foreignText } from '@pmail/testkit/fuzz/inputs.ts';

const VALID = ['jo@example.com', 'Jo.Bloggs+tag@Example.COM', 'jo@münchen.example'];
const EXAMPLES = [
  ...VALID,
  '"quoted local"@example.org',
  '"a\\"b"@example.org',
  'jo@xn--mnchen-3ya.example.',
  `${'l'.repeat(64)}@${'d'.repeat(63)}.example`,
  'a@b.c',
  'üser@example.com',
  'jo@[192.0.2.1]',
];
const WORDS = [
  '@',
  '"',
  '\\',
  '.',
  '..',
  '+',
  '<',
  '>',
  '(',
  ')',
  ',',
  ':',
  ';',
  '[',
  ']',
  'xn--',
  '\u212a',
  '。',
  '\u00ad',
];

const PRINTABLE = /^[\x20-\x7e]+$/;

export const addresses: Fuzzer = fuzzer('addresses', foreignText(EXAMPLES, WORDS), (input) => {
  const parsed = parseAddress(input);
  if (!parsed.ok) {
    must(['invalid', 'unsupported'].includes(parsed.fault) && parsed.message !== '', 'a refusal says what is wrong');
    must(!VALID.includes(input), 'what is right is taken');
    return parsed.message;
  }
  const { address } = parsed;
  must(PRINTABLE.test(address) && address === address.toLowerCase(), 'an address is ASCII in lower case');
  must(address.length <= LIMITS.address_chars_max, 'an address is as long as it may be');
  must(localPartOf(address).length <= LIMITS.local_part_octets_max, 'so is its local part');
  must(parseDomain(domainOf(address)) === domainOf(address), 'its domain is in its one form');
  const again = parseAddress(address);
  must(again.ok && again.address === address, 'an address is read as itself');
  const bare = withoutDetail(address);
  must(parseAddress(bare).ok, 'without its detail it is an address');
  const detail = detailOf(address);
  if (bare !== address) must(detail !== null && withoutDetail(bare) === bare, 'a detail goes once');
  return true;
});

export const usernames: Fuzzer = fuzzer(
  'usernames',
  foreignText(['desk', 'front-desk', 'a.b_c', 'p0stmaster', 'rnail'], [...WORDS, '-', '_', '0', '1', 'rn']),
  (input) => {
    const checked = checkUsername(input, {
      domain_class: 'platform',
      chars_max: 24,
      suffix: '.acme',
      path: 'username',
    });
    if (!checked.ok) return false;
    const { username } = checked.value;
    must(/^[a-z0-9][a-z0-9._-]{0,23}$/.test(username), 'a name is of the form it must have');
    const parsed = parseAddress(`${username}.acme@agents.example`);
    must(parsed.ok && parsed.address.startsWith(username), 'a name makes an address');
    return true;
  },
);

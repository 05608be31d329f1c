import { isBlockedAddress, parseIpv4, parseIpv6 } from '@pmail/core/net/blocked.ts';
import { endpointUrlFault } from '@pmail/core/webhooks/url.ts';
import { type Fuzzer, fuzzer, must } from '@pmail/testkit/fuzz/fuzzer.ts';
import { foreignText } from '@pmail/testkit/fuzz/inputs.ts';

const RULES = { api_host: 'api.agents.example.org', platform_domain: 'agents.example.org', allow_loopback: false };

const VALID = ['https://hooks.acme.com/x?y=1', 'https://hooks.acme.com:8443/'];

export const webhookUrls: Fuzzer = fuzzer(
  'webhook URLs',
  foreignText(
    [
      ...VALID,
      'https://user:pass@acme.com/',
      'https://127.0.0.1/',
      'https://[::1]/',
      'https://0x7f.1/',
      'https://2130706433/',
      'https://localhost./x',
      'https://x.agents.example.org/',
    ],
    ['@', '\\', '//', '#', '?', ':', '%2e', '%40', '。', '.', '[', ']', '0x', '\t', 'http://', 'https:/', 'ⓛ'],
  ),
  (text) => {
    const fault = endpointUrlFault(text, RULES);
    if (fault !== null) {
      must(!VALID.includes(text), 'what is right is taken');
      must(
        fault.startsWith('must') && (text.length < 12 || !fault.includes(text)),
        'a refusal says a rule and no input',
      );
      return fault;
    }
    const url = new URL(text);
    must(url.protocol === 'https:' && url.username === '' && url.password === '' && url.hash === '', 'plain https');
    const host = url.hostname.replace(/\.$/, '');
    must(parseIpv4(host) === undefined && parseIpv6(host.replace(/^\[|\]$/g, '')) === undefined, 'a name, no address');
    must(host.includes('.') && !/(^|\.)(localhost|local|internal|test|arpa)$/.test(host), 'a public name');
    must(!host.endsWith('agents.example.org'), 'nothing of ours');
    must(url.port === '' || Number(url.port) >= 1_024, 'a port that is let through');
    must(endpointUrlFault(url.href, RULES) === null, 'what is kept is taken again');
    return true;
  },
);

export const ipAddresses: Fuzzer = fuzzer(
  'IP addresses',
  foreignText(
    ['93.184.216.34', '10.0.0.1', '2606:2800:21f::1', '::ffff:10.0.0.1', '64:ff9b::7f00:1', 'fe80::1%eth0', '::'],
    [':', '::', '.', '0', 'ffff', '256', '01', '/', '%'],
  ),
  (text) => {
    const blocked = isBlockedAddress(text);
    const bytes = parseIpv4(text) ?? parseIpv6(text);
    if (bytes === undefined) {
      must(blocked, 'what is no address is not reached');
      return 'no address';
    }
    must(bytes.length === 4 || bytes.length === 16, 'four or sixteen bytes');
    must(
      bytes.every((byte) => Number.isInteger(byte) && byte >= 0 && byte <= 255),
      'bytes',
    );
    if (bytes.length === 4) {
      must(isBlockedAddress(`::ffff:${text}`) === blocked, 'the same behind IPv6');
      const [a = 0, b = 0] = bytes;
      must(blocked || !(a === 10 || a === 127 || (a === 192 && b === 168) || (a === 169 && b === 254)), 'no inner net');
    }
    const start = Buffer.from(bytes).subarray(0, 6).toString('hex');
    must(blocked || bytes.length === 4 || start !== '0064ff9b0001', 'nor one that each network reads in its own way');
    return !blocked || 'blocked';
  },
  {
    // The IPv4 address within these was looked for at one place, and networks put it at another: a way to inner hosts.
    kept: ['64:ff9b:1:a9fe:a9:fe00::', '64:ff9b:1:7f00:0:100::', '64:ff9b:1::8.8.8.8', '64:ff9b:1::'],
  },
);

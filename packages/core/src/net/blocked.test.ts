import { describe, expect, test } from 'vitest';
import { isBlockedAddress, parseIpv4, parseIpv6 } from './blocked.ts';

describe('addresses that nothing may be sent to', () => {
  test.each([
    // The first and last address of each range.
    ['0.0.0.0', '0.255.255.255'],
    ['10.0.0.0', '10.255.255.255'],
    ['100.64.0.0', '100.127.255.255'],
    ['127.0.0.0', '127.255.255.255'],
    ['169.254.0.0', '169.254.255.255'],
    ['172.16.0.0', '172.31.255.255'],
    ['192.0.0.0', '192.0.0.255'],
    ['192.0.2.0', '192.0.2.255'],
    ['192.88.99.0', '192.88.99.255'],
    ['192.168.0.0', '192.168.255.255'],
    ['198.18.0.0', '198.19.255.255'],
    ['198.51.100.0', '198.51.100.255'],
    ['203.0.113.0', '203.0.113.255'],
    ['224.0.0.0', '239.255.255.255'],
    ['240.0.0.0', '255.255.255.255'],
    ['::', '::255.255.255.255'],
    ['::1', '::7f00:1'],
    ['100::', '100::ffff:ffff:ffff:ffff'],
    ['2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    // IPv4 inside: mapped, both prefixes of NAT64, 6to4.
    ['::ffff:10.0.0.1', '::ffff:a00:1'],
    ['::FFFF:127.0.0.1', '0:0:0:0:0:ffff:7f00:1'],
    ['64:ff9b::192.168.1.1', '64:ff9b::c0a8:101'],
    // That of a local network, with the IPv4 address at each place of RFC 6052 and a public one.
    ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
    ['64:ff9b:1::169.254.169.254', '64:ff9b:1:a9fe:a9:fe00::'],
    ['64:ff9b:1:7f00:0:100::', '64:ff9b:1::8.8.8.8'],
    ['2002:7f00:1::', '2002:a00:1:ffff:ffff:ffff:ffff:ffff'],
  ])('%s and %s', (first, last) => {
    expect([first, last].map(isBlockedAddress)).toEqual([true, true]);
  });

  test.each([
    '',
    'example.com',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '256.1.1.1',
    '1.1.1.1 ',
    ':::',
    '1:2:3:4:5:6:7',
    'fe80::1%eth0',
    '[::1]',
    '::ffff:1.2.3.256',
    '12345::',
    '1::2::3',
  ])('what is no address: %j', (text) => {
    expect(isBlockedAddress(text)).toBe(true);
  });
});

test.each([
  // Neighbours of the ranges, and public addresses in every form.
  '1.0.0.0',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '169.253.255.255',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.167.255.255',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '8.8.8.8',
  '::1:0:0:0',
  '100:0:0:1::',
  '2001:200::',
  '2001:4860:4860::8888',
  '2606:4700:4700::1111',
  '4000::',
  '5eff::',
  'fbff::',
  '::ffff:8.8.8.8',
  '64:ff9b::8.8.8.8',
  '64:ff9b:0:ffff::',
  '64:ff9b:2::',
  '2002:808:808::1',
])('%s is public', (address) => {
  expect(isBlockedAddress(address)).toBe(false);
});

test('addresses are read into their bytes', () => {
  expect(parseIpv4('1.20.255.0')).toEqual([1, 20, 255, 0]);
  expect(parseIpv6('::1')).toEqual([...Array.from({ length: 15 }, () => 0), 1]);
  expect(parseIpv6('2001:db8::1.2.3.4')).toEqual([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
  expect(parseIpv6('1:2:3:4:5:6:7:8')).toEqual([0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]);
  expect(parseIpv6('1:2:3:4:5:6:7::')).toEqual([0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0]);
});

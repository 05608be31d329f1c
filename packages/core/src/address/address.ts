import { LIMITS } from '../limits.ts';

/**
 * An address as the service stores and compares it: lower case, domain in A-labels, dots significant
 * (RFC 5321 section 4.1.2 with an ASCII local part).
 */
export type Address = string;

/** An address with the name shown beside it; `name` is `""` when there is none. */
export interface Mailbox {
  address: Address;
  name: string;
}

export type AddressFault = 'invalid' | 'unsupported';

export type ParsedAddress = { ok: true; address: Address } | { ok: false; fault: AddressFault; message: string };

const ATOM = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const QUOTED = /^"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*"$/;
const LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;

function invalid(message: string): ParsedAddress {
  return { ok: false, fault: 'invalid', message };
}

/**
 * Parses one bare address (no display name, no angle brackets, no comments).
 *
 * `unsupported` is an address that is fine elsewhere but has a local part outside ASCII (RFC 6531), which the
 * transports cannot carry. Address literals (`user@[192.0.2.1]`) and single-label domains are refused as invalid:
 * no transport of ours delivers to them.
 */
export function parseAddress(input: string): ParsedAddress {
  if (input.length > 2 * LIMITS.address_chars_max) return invalid('is too long');
  const text = input.replace(/^ +| +$/g, '');
  const at = text.lastIndexOf('@');
  if (at < 1) return invalid('is not an address of the form name@domain');
  const domain = parseDomain(text.slice(at + 1));
  if (domain === undefined) return invalid('has a domain that is not a valid DNS name');
  const local = parseLocalPart(text.slice(0, at));
  if (typeof local !== 'string') return local;
  const address = `${local}@${domain}`;
  if (address.length > LIMITS.address_chars_max)
    return invalid(`is longer than ${LIMITS.address_chars_max} characters`);
  return { ok: true, address };
}

function parseLocalPart(input: string): string | ParsedAddress {
  for (const char of input) {
    const code = char.codePointAt(0) ?? 0;
    if (code < 0x20 || code === 0x7f) return invalid('contains a control character');
  }
  const lower = asciiLower(input);
  if (/[^\x20-\x7e]/.test(lower)) {
    // A character that no address may hold makes it invalid, not merely unsupported.
    if (/[\s"(),:;<>@[\\\]]/.test(lower)) return invalid('has a local part with a character that needs quoting');
    return { ok: false, fault: 'unsupported', message: 'has a local part outside ASCII' };
  }
  let local = lower;
  if (QUOTED.test(local)) {
    const content = local.slice(1, -1).replace(/\\(.)/g, '$1');
    // One spelling per address: without quotes where it can be, else with no more escapes than it needs.
    local = ATOM.test(content) ? content : `"${content.replace(/["\\]/g, '\\$&')}"`;
  } else if (!ATOM.test(local)) {
    return invalid('has a local part that is not a dot-atom');
  }
  if (local.length > LIMITS.local_part_octets_max) {
    return invalid(`has more than ${LIMITS.local_part_octets_max} octets before the @`);
  }
  return local;
}

/**
 * A DNS name in lower-case A-labels (RFC 5890), or `undefined`. A trailing dot is dropped; at least two labels, the
 * last one not all digits.
 */
export function parseDomain(input: string): string | undefined {
  let name = input.endsWith('.') ? input.slice(0, -1) : input;
  if (/[^\x21-\x7e]/.test(name)) {
    const ascii = toAscii(name);
    if (ascii === undefined) return undefined;
    name = ascii;
  }
  name = asciiLower(name);
  if (name.length === 0 || name.length > LIMITS.domain_octets_max) return undefined;
  const labels = name.split('.');
  if (labels.length < 2 || /^\d+$/.test(labels.at(-1) ?? '')) return undefined;
  for (const label of labels) {
    if (label.length > LIMITS.domain_label_octets_max || !LABEL.test(label)) return undefined;
  }
  return name;
}

/** IDNA (UTS #46) by way of the URL parser, which every runtime here has. */
function toAscii(name: string): string | undefined {
  // Characters with a meaning in a URL would end the host early and hide the rest of the name.
  if (/[\s/?#@:\\[\]%]/.test(name) || /[\x00-\x20\x7f]/.test(name)) return undefined;
  try {
    return new URL(`http://${name}/`).hostname;
  } catch {
    return undefined;
  }
}

/** ASCII lower-casing only: `toLowerCase` would turn the Kelvin sign into `k` and make two addresses one. */
export function asciiLower(text: string): string {
  return text.replace(/[A-Z]/g, (char) => char.toLowerCase());
}

export function domainOf(address: Address): string {
  return address.slice(address.lastIndexOf('@') + 1);
}

export function localPartOf(address: Address): string {
  return address.slice(0, address.lastIndexOf('@'));
}

/** `user+tag@domain` without its tag (the part from the first `+`); an address without one is returned unchanged. */
export function withoutDetail(address: Address): Address {
  const local = localPartOf(address);
  const plus = local.startsWith('"') ? -1 : local.indexOf('+');
  return plus > 0 ? `${local.slice(0, plus)}@${domainOf(address)}` : address;
}

/** What stands between the first plus of the local part and the @, or null when there is none. */
export function detailOf(address: Address): string | null {
  const local = localPartOf(address);
  const plus = local.indexOf('+');
  return plus < 1 ? null : local.slice(plus + 1);
}

/** `j***@example.com`: enough for a person to recognise an address that is stored only as a hash. */
export function addressHint(address: Address): string {
  return `${address.slice(0, 1)}***@${domainOf(address)}`;
}

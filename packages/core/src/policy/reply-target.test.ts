import { describe, expect, it } from 'vitest';
import type { Mailbox } from '../address/address.ts';
import { organisationalDomain, replyTarget } from './reply-target.ts';

const FROM: Mailbox = { address: 'jo@mail.example.co.uk', name: 'Jo' };
const STRANGER: Mailbox = { address: 'collect@other.example', name: '' };

function answered(reply_to: Mailbox[], facts: { known?: boolean; written?: string[]; from?: Mailbox | null } = {}) {
  const { known = false, written = [], from = FROM } = facts;
  return replyTarget({ from, reply_to, known_sender: known }, (address) => written.includes(address));
}

describe('whom a reply goes to', () => {
  it('is the sender when there is no Reply-To', () => {
    expect(answered([])).toBe(FROM);
  });

  it('is the sender when the Reply-To leads elsewhere', () => {
    expect(answered([STRANGER])).toBe(FROM);
  });

  it('is the Reply-To of a known sender', () => {
    expect(answered([STRANGER], { known: true })).toBe(STRANGER);
  });

  it('is the Reply-To this mailbox has written to before', () => {
    expect(answered([STRANGER], { written: [STRANGER.address] })).toBe(STRANGER);
    expect(answered([STRANGER], { written: [FROM.address] })).toBe(FROM);
  });

  it('is a Reply-To of the same organisation', () => {
    for (const address of ['team@example.co.uk', 'x@help.example.co.uk', 'jo@mail.example.co.uk']) {
      expect(answered([{ address, name: '' }])).toEqual({ address, name: '' });
    }
  });

  it.each(['x@other.co.uk', 'x@example.co.uk.attacker.example', 'x@notexample.co.uk', 'x@co.uk'])(
    'is not %s, which only looks like the same organisation',
    (address) => {
      expect(answered([{ address, name: '' }])).toBe(FROM);
    },
  );

  it('tells the customers of a shared host apart', () => {
    const from = { address: 'a@one.github.io', name: '' };
    expect(answered([{ address: 'a@two.github.io', name: '' }], { from })).toBe(from);
  });

  it('is the first Reply-To of several, and only that one is judged', () => {
    const team: Mailbox = { address: 'team@example.co.uk', name: '' };
    expect(answered([team, STRANGER])).toBe(team);
    expect(answered([STRANGER, team])).toBe(FROM);
  });

  it('is nobody when there is no sender and the Reply-To cannot be trusted', () => {
    expect(answered([], { from: null })).toBeNull();
    expect(answered([STRANGER], { from: null })).toBeNull();
    expect(answered([STRANGER], { from: null, written: [STRANGER.address] })).toBe(STRANGER);
  });
});

describe('the organisational domain', () => {
  it.each([
    ['mail.example.com', 'example.com'],
    ['example.com', 'example.com'],
    ['a.b.example.co.uk', 'example.co.uk'],
    ['one.github.io', 'one.github.io'],
    ['co.uk', 'co.uk'],
    ['agents.example', 'agents.example'],
  ])('of %s is %s', (name, organisation) => {
    expect(organisationalDomain(name)).toBe(organisation);
  });
});

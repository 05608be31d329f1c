import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { utf8Length } from '../hash.ts';
import { LIMITS } from '../limits.ts';
import { boundHeaders, type StoredHeaders } from './bound-headers.ts';

const HEADERS: StoredHeaders = {
  from: { address: 'jo@example.org', name: 'Jo' },
  reply_to: [],
  to: [{ address: 'desk@acme.example.com', name: '' }],
  cc: [],
  subject: 'Hello',
  rfc_message_id: 'a@example.org',
  in_reply_to: ['b@example.org'],
  references: ['c@example.org', 'b@example.org'],
};

const people = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ address: `p${n}@example.org`, name: 'P' }));
const ids = (count: number) => Array.from({ length: count }, (_, n) => `${n}@example.org`);

describe('the header of a received message', () => {
  it('is stored as it is when there is room for it', () => {
    expect(boundHeaders(HEADERS)).toEqual({ headers: HEADERS, cut: false });
    const full = { ...HEADERS, subject: 's'.repeat(LIMITS.row_subject_chars_max), references: ids(50) };
    expect(boundHeaders(full)).toEqual({ headers: full, cut: false });
  });

  it.each<[string, Partial<StoredHeaders>, Partial<StoredHeaders>]>([
    [
      'a name',
      { from: { address: 'a@x.example', name: 'n'.repeat(300) } },
      { from: { address: 'a@x.example', name: 'n'.repeat(256) } },
    ],
    ['the subject', { subject: 's'.repeat(5_000) }, { subject: 's'.repeat(4_000) }],
    ['its id', { rfc_message_id: `${'i'.repeat(999)}` }, { rfc_message_id: null }],
    ['the id it answers', { in_reply_to: ['i'.repeat(999), 'b@x'] }, { in_reply_to: ['b@x'] }],
    [
      'references, but not their root',
      { references: ids(60) },
      { references: ['0@example.org', ...ids(60).slice(-49)] },
    ],
  ])('has %s cut', (_name, long, cut) => {
    expect(boundHeaders({ ...HEADERS, ...long })).toEqual({ headers: { ...HEADERS, ...cut }, cut: true });
  });

  it('names the first of very many people', () => {
    const { headers, cut } = boundHeaders({ ...HEADERS, to: people(10_000) });
    expect(cut).toBe(true);
    expect(headers.to.length).toBeGreaterThan(500);
    expect(headers.to).toEqual(people(10_000).slice(0, headers.to.length));
  });

  it('fits a row beside the bodies, whatever it is', () => {
    const text = fc.string({ unit: 'binary', maxLength: 50 }).map((part) => part.repeat(2_000));
    const list = fc.array(
      text.map((name) => ({ address: 'a@x.example', name })),
      { maxLength: 300 },
    );
    fc.assert(
      fc.property(
        list,
        list,
        list,
        text,
        fc.array(text, { maxLength: 300 }),
        (reply_to, to, cc, subject, references) => {
          const { headers } = boundHeaders({ ...HEADERS, reply_to, to, cc, subject, references });
          expect(utf8Length(JSON.stringify(headers))).toBeLessThan(2_000_000 - 1_835_008);
        },
      ),
      { numRuns: 20 },
    );
  });
});

import type { Sql } from '../sql.ts';

/**
 * Recipients that were counted for a send, as bits by their position in the message. A message has at most 49, so they
 * fit into an integer that JavaScript holds exactly; its bitwise operators do not, as they know 32 bits.
 */

/**
 * Remembers recipients under a settlement of theirs. Call inside a transaction, with the settlement's row there.
 *
 * @returns how many of them no settlement of the send has counted before, and 1 when it is its first acceptance
 */
export function countAccepted(
  sql: Sql,
  ref: string,
  n: number,
  positions: readonly number[],
): { sends: number; outbound: 0 | 1 } {
  const before = sql
    .all<{ accepted: number }>('SELECT accepted FROM applied WHERE ref = ? AND accepted > 0', ref)
    .flatMap(({ accepted }) => positionsIn(accepted));
  const known = new Set(before);
  const fresh = [...new Set(positions)].filter((position) => !known.has(position));
  if (fresh.length === 0) return { sends: 0, outbound: 0 };
  sql.run(
    'UPDATE applied SET accepted = accepted + ? WHERE ref = ? AND n = ?',
    fresh.reduce((bits, position) => bits + 2 ** position, 0),
    ref,
    n,
  );
  return { sends: fresh.length, outbound: known.size === 0 ? 1 : 0 };
}

function positionsIn(bits: number): number[] {
  const positions: number[] = [];
  for (let [rest, position] = [bits, 0]; rest > 0; position++) {
    if (rest % 2 === 1) positions.push(position);
    rest = Math.floor(rest / 2);
  }
  return positions;
}

/**
 * Whether two byte strings are equal, in a time that depends only on their lengths. For MACs, hashes and tokens that a
 * caller presents.
 */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return difference === 0;
}

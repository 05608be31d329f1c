/**
 * What a write broke, told from the error that SQLite gave, which D1 passes on inside a longer message. Two requests
 * that both saw a free name meet here: the one that comes second gets the same answer as if it had looked later.
 *
 * @returns the kind and the columns, such as `UNIQUE addresses.address`; undefined when it was another error
 */
export function brokenConstraint(error: unknown): string | undefined {
  const message = error instanceof Error ? error.message : '';
  const match = /(UNIQUE|NOT NULL) constraint failed: ([a-z_]+\.[a-z_]+(?:, [a-z_]+\.[a-z_]+)*)/.exec(message);
  return match === null ? undefined : `${match[1]} ${match[2]}`;
}

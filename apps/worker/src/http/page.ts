import type { RouteId } from '@pmail/contracts/routes.ts';
import { ok, type Result } from '@pmail/core/result.ts';
import type { RequestContext } from './context.ts';
import { type Position, readCursor, writeCursor } from './cursor.ts';

/**
 * One page of a list in the directory, and the cursor of the next.
 *
 * @param read so many rows behind a position, in their order; one more than a page tells that there is another
 */
export async function pageOf<Row>(
  context: RequestContext,
  route: RouteId,
  input: { params: object; query: { cursor?: string | undefined; limit: number } },
  read: (limit: number, after: Position | null) => Promise<Row[]>,
  positionOf: (row: Row) => Position,
): Promise<Result<{ rows: Row[]; next_cursor: string | null }>> {
  const { limit } = input.query;
  const cursor = await readCursor(context, route, input);
  if (!cursor.ok) return cursor;
  const found = await read(limit + 1, cursor.value);
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  const position = last === undefined ? null : positionOf(last);
  return ok({ rows, next_cursor: await writeCursor(context, route, input, position) });
}

/** The position of a row in a list by the time of its making. */
export function byCreation({ created_at, id }: { created_at: number; id: string }): Position {
  return { at: created_at, id };
}

import type { RouteId } from '@pmail/contracts/routes.ts';
import { ok, type Result } from '@pmail/core/result.ts';
import type { RequestContext } from './context.ts';
import { type Position, readCursor, writeCursor } from './cursor.ts';

/** A list in the directory, as its route shows it. */
export interface Listing<Row, Shown> {
  /** So many rows behind a position, in their order. */
  read: (limit: number, after: Position | null) => Promise<Row[]>;
  position: (row: Row) => Position;
  show: (rows: Row[]) => Shown[] | Promise<Shown[]>;
}

/** One page of a list, and the cursor of the next; a row more than a page holds tells that there is one. */
export async function pageOf<Row, Shown>(
  context: RequestContext,
  route: RouteId,
  input: { params: object; query: { cursor?: string | undefined; limit: number } },
  { read, position, show }: Listing<Row, Shown>,
): Promise<Result<{ status: 200; body: { data: Shown[]; next_cursor: string | null } }>> {
  const { limit } = input.query;
  const cursor = await readCursor(context, route, input);
  if (!cursor.ok) return cursor;
  const found = await read(limit + 1, cursor.value);
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  const data = await show(rows);
  const next = await writeCursor(context, route, input, last === undefined ? null : position(last));
  return ok({ status: 200, body: { data, next_cursor: next } });
}

/** The position of a row in a list by the time of its making. */
export function byCreation({ created_at, id }: { created_at: number; id: string }): Position {
  return { at: created_at, id };
}

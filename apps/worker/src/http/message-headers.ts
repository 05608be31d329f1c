import type { MessageId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { canReview, mailboxCall, mailboxOf, type RequestContext } from './context.ts';
import { object } from './object-call.ts';

interface Header {
  name: string;
  value: string;
}

/** An invocation has six connections. */
const READ_AT_ONCE = 6;

/** Headers of a stored message; null when its raw form is gone. */
export async function readHeaders(context: RequestContext, id: MessageId): Promise<Header[] | null> {
  const start = await readStart(context, id);
  return start instanceof Unfinished ? start.whole() : start;
}

/** Messages with their headers. Those whose header is very long are read whole, and so one after the other. */
export async function withHeaders<M extends { id: MessageId }>(
  context: RequestContext,
  messages: readonly M[],
): Promise<(M & { headers: Header[] | null })[]> {
  const shown: (M & { headers: Header[] | null })[] = [];
  for (let from = 0; from < messages.length; from += READ_AT_ONCE) {
    const some = messages.slice(from, from + READ_AT_ONCE);
    const starts = await Promise.all(some.map(({ id }) => readStart(context, id)));
    for (const [index, message] of some.entries()) {
      const start = starts[index] ?? null;
      shown.push({ ...message, headers: start instanceof Unfinished ? await start.whole() : start });
    }
  }
  return shown;
}

/** A header that goes on behind what was read of its message. */
class Unfinished {
  readonly whole: () => Promise<Header[] | null>;

  constructor(whole: () => Promise<Header[] | null>) {
    this.whole = whole;
  }
}

async function readStart(context: RequestContext, id: MessageId): Promise<Header[] | null | Unfinished> {
  const { BLOBS } = context.env;
  const stub = mailboxOf(context, context.identity);
  const key = await object(stub.rawLocation(mailboxCall(context, context.identity), id, canReview(context)));
  if (key === null || key === undefined) return null;
  const stored = await BLOBS.get(key, { range: { offset: 0, length: LIMITS.header_read_bytes } });
  if (stored === null) return null;
  const bytes = new Uint8Array(await stored.arrayBuffer());
  if (bytes.length === stored.size || hasEnded(bytes)) return headersOf(bytes);
  return new Unfinished(async () => {
    const whole = await BLOBS.get(key);
    return whole === null ? null : headersOf(new Uint8Array(await whole.arrayBuffer()));
  });
}

async function headersOf(bytes: Uint8Array): Promise<Header[]> {
  const { parseMail } = await import('@pmail/mime/parse.ts');
  return (await parseMail(bytes)).headers;
}

/** Whether there is an empty line. */
function hasEnded(bytes: Uint8Array): boolean {
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) {
    if (bytes[at + 1] === 0x0a || (bytes[at + 1] === 0x0d && bytes[at + 2] === 0x0a)) return true;
  }
  return false;
}

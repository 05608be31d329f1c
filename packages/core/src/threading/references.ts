import { utf8Length } from '../hash.ts';
import { LIMITS } from '../limits.ts';

/**
 * References of a message that answers or forwards `parent` (RFC 5322 section 3.6.4): the parent's own list (else its
 * In-Reply-To), then the parent. Trimmed to 20 entries, then to 2,048 bytes as written, each time keeping the first
 * entry (the thread's root) and the newest ones.
 */
export function buildReferences(parent: { id: string; references: string[]; in_reply_to: string | null }): string[] {
  const before =
    parent.references.length > 0 ? parent.references : parent.in_reply_to === null ? [] : [parent.in_reply_to];
  const all = [...before, parent.id];
  // A repeated id stays only where it stands last.
  let list = all.filter((id, index) => all.lastIndexOf(id) === index);
  if (list.length > LIMITS.references_count_max) {
    list = [...list.slice(0, 1), ...list.slice(-(LIMITS.references_count_max - 1))];
  }
  let bytes = writtenBytes(list);
  while (bytes > LIMITS.references_bytes_max && list.length > 2) {
    list.splice(1, 1);
    bytes = writtenBytes(list);
  }
  // Two ids can be too long together; the parent is the one that threads the reply.
  if (bytes > LIMITS.references_bytes_max) list = list.slice(-1);
  return writtenBytes(list) > LIMITS.references_bytes_max ? [] : list;
}

/** Size of the header value: each id in brackets, one blank between. */
function writtenBytes(ids: string[]): number {
  return ids.reduce((sum, id) => sum + utf8Length(id) + 3, -1);
}

/** Delimiter lines of one message that are read; mail of people and programs has far fewer. */
const DELIMITERS_COUNT_MAX = 2_000;
/** A boundary has at most 70 characters (RFC 2046 section 5.1.1); longer ones are accepted all the same. */
const DELIMITER_BYTES_MAX = 300;

/**
 * The message up to the delimiter line at which it has more parts than anything reasonable. The parser keeps a node for
 * each part, so 25 MiB of delimiters would cost minutes and gigabytes.
 */
export function withinPartLimit(raw: Uint8Array): Uint8Array {
  if (!hasManyDashLines(raw)) return raw;
  const delimiters = new Set<string>();
  // A boundary that is not written in the plain way is not worked out; then every line of dashes counts.
  let anyLine = false;
  let count = 0;
  for (let start = 0; start < raw.length; ) {
    const newline = raw.indexOf(0x0a, start);
    const end = newline < 0 ? raw.length : newline;
    if (isDashLine(raw, start)) {
      if (anyLine || delimiters.has(delimiterOf(raw, start, end))) count++;
      if (count > DELIMITERS_COUNT_MAX) return raw.subarray(0, start);
    } else {
      const boundary = declaredBoundary(latin1(raw, start, end));
      if (boundary === undefined) anyLine = true;
      else if (boundary !== null) delimiters.add(trimmed(`--${boundary}`));
    }
    start = end + 1;
  }
  return raw;
}

/** The boundary that a line declares, `null` for a line without one, `undefined` for one that is hard to read. */
function declaredBoundary(line: string): string | null | undefined {
  const mentions = line.match(/boundary/gi)?.length ?? 0;
  if (mentions === 0) return null;
  const found = /boundary\s*=\s*(?:"([^"\\]*)"|([^\s;"\\]+))\s*(?:;|$)/i.exec(line);
  return mentions > 1 || found === null ? undefined : (found[1] ?? found[2]);
}

function hasManyDashLines(raw: Uint8Array): boolean {
  let count = 0;
  for (let start = 0; start < raw.length; ) {
    if (isDashLine(raw, start) && ++count > DELIMITERS_COUNT_MAX) return true;
    const newline = raw.indexOf(0x0a, start);
    if (newline < 0) return false;
    start = newline + 1;
  }
  return false;
}

function isDashLine(raw: Uint8Array, start: number): boolean {
  return raw[start] === 0x2d && raw[start + 1] === 0x2d;
}

function delimiterOf(raw: Uint8Array, start: number, end: number): string {
  return trimmed(latin1(raw, start, Math.min(end, start + DELIMITER_BYTES_MAX)));
}

/** White space at the end of a delimiter line does not count (RFC 2046 section 5.1.1). */
function trimmed(line: string): string {
  return line.replace(/[ \t\r]+$/, '');
}

function latin1(raw: Uint8Array, start: number, end: number): string {
  return Buffer.from(raw.buffer, raw.byteOffset + start, end - start).toString('latin1');
}

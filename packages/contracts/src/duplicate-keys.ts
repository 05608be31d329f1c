/** Objects nested deeper are not looked at: no body of the contract comes near, so its schema refuses them. */
const DEPTH_MAX = 32;
/** Keys of one object that are remembered, to bound the memory; a schema refuses an object with so many. */
const KEYS_MAX = 20_000;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** An object or a list that is open where the scan stands. */
interface Level {
  /** null for a list. */
  keys: Set<string> | null;
  /** The member that is being read. */
  at: string | number;
}

/**
 * The path of the first key that an object has twice, or undefined. `JSON.parse` keeps the last of them and says nothing,
 * while whoever looked at the text on its way may have gone by the first. One pass; strings are skipped, not read.
 *
 * @param text what `JSON.parse` took
 */
export function duplicateKey(text: string): (string | number)[] | undefined {
  const levels: Level[] = [];
  let unread = 0;
  for (let i = 0; i < text.length; i++) {
    const level = unread > 0 ? undefined : levels.at(-1);
    switch (text.charCodeAt(i)) {
      case OPEN_OBJECT:
      case OPEN_LIST:
        if (levels.length >= DEPTH_MAX) unread++;
        else if (text.charCodeAt(i) === OPEN_LIST) levels.push({ keys: null, at: 0 });
        else levels.push({ keys: new Set(), at: '' });
        break;
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        if (unread > 0) unread--;
        else levels.pop();
        break;
      case COMMA:
        if (typeof level?.at === 'number') level.at++;
        break;
      case QUOTE: {
        const end = endOfString(text, i);
        if (level !== undefined && level.keys !== null && isKey(text, end)) {
          level.at = unescaped(text.slice(i + 1, end - 1));
          if (level.keys.has(level.at)) return levels.map(({ at }) => at);
          if (level.keys.size < KEYS_MAX) level.keys.add(level.at);
        }
        i = end - 1;
      }
    }
  }
  return undefined;
}

/** @returns where the string that begins at `start` has ended */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = end;
    while (text.charCodeAt(escapes - 1) === BACKSLASH) escapes--;
    if ((end - escapes) % 2 === 0) return end + 1;
  }
}

/** Only a key is followed by a colon. */
function isKey(text: string, end: number): boolean {
  let next = end;
  while (/[ \t\r\n]/.test(text.charAt(next))) next++;
  return text.charCodeAt(next) === COLON;
}

function unescaped(key: string): string {
  return key.includes('\\') ? (JSON.parse(`"${key}"`) as string) : key;
}

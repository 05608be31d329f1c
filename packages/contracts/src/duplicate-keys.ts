import { endOfString } from './json-shape.ts';

/** Keys of one object that are remembered, to bound the memory; a schema refuses an object with so many. */
const KEYS_MAX = 20_000;

const [QUOTE, COMMA, COLON] = [0x22, 0x2c, 0x3a];
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
 * @param text what `JSON.parse` took, and whose depth is bounded
 */
export function duplicateKey(text: string): (string | number)[] | undefined {
  const levels: Level[] = [];
  for (let i = 0; i < text.length; i++) {
    const level = levels.at(-1);
    switch (text.charCodeAt(i)) {
      case OPEN_OBJECT:
        levels.push({ keys: new Set(), at: '' });
        break;
      case OPEN_LIST:
        levels.push({ keys: null, at: 0 });
        break;
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        levels.pop();
        break;
      case COMMA:
        if (typeof level?.at === 'number') level.at++;
        break;
      case QUOTE: {
        const end = endOfString(text, i) ?? text.length;
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

/** Only a key is followed by a colon. */
function isKey(text: string, end: number): boolean {
  let next = end;
  while (/[ \t\r\n]/.test(text.charAt(next))) next++;
  return text.charCodeAt(next) === COLON;
}

function unescaped(key: string): string {
  return key.includes('\\') ? (JSON.parse(`"${key}"`) as string) : key;
}

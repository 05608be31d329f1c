import { codePoints } from '../address/names.ts';
import { LIMITS } from '../limits.ts';

/** Reply and forward prefixes of mail programs in many languages, without their colon. */
const PREFIXES = [
  're',
  'fw',
  'fwd',
  'aw',
  'wg',
  'sv',
  'vs',
  'vb',
  'antw',
  'doorst',
  'tr',
  'rif',
  'enc',
  'res',
  'rv',
  'odp',
  'pd',
  'ynt',
  'ilt',
  // No case folding makes the Turkish capital I one of these two.
  'i̇lt',
  'İlt',
  'atb',
  'πληρ',
  'σχετ',
  'ответ',
  '回复',
  '回覆',
  '答复',
  '转发',
  '轉寄',
];
/** One-letter prefixes are taken only with a colon and a blank, or a normal sentence would lose its start. */
const SINGLE = ['i', 'r'];

const PREFIX = new RegExp(
  `^(?:(?:${PREFIXES.join('|')})\\s*(?:\\[\\d{1,3}\\]|\\(\\d{1,3}\\))?\\s*[:：]\\s*|(?:${SINGLE.join('|')})(?:\\[\\d{1,3}\\]|\\(\\d{1,3}\\))?:\\s+)`,
  'iu',
);
const LIST_TAG = /^\[[^\]]{1,40}\]\s*/u;

export const EMPTY_SUBJECT = '(no subject)';

/**
 * A subject without reply and forward prefixes: control characters become blanks, white space collapses, the prefixes
 * go; a list tag at the start stays and prefixes behind it go. Empty becomes `(no subject)`.
 *
 * All prefixes go, however many: with a bound on them, normalising the result again would change it.
 */
export function normalizeSubject(subject: string): string {
  let rest = subject
    .replace(/[\x00-\x1f\x7f-\x9f]/g, ' ')
    .replace(/\s+/gu, ' ')
    .trim();
  let tag = '';
  for (;;) {
    const prefix = PREFIX.exec(rest);
    if (prefix !== null) {
      rest = rest.slice(prefix[0].length).trim();
      continue;
    }
    const list = tag === '' ? LIST_TAG.exec(rest) : null;
    if (list === null || !PREFIX.test(rest.slice(list[0].length))) break;
    tag = list[0].trim();
    rest = rest.slice(list[0].length);
  }
  const out = tag === '' ? rest : `${tag} ${rest}`.trim();
  return out === '' ? EMPTY_SUBJECT : cut(out, LIMITS.subject_chars_max);
}

/** Subject of a reply or forward: the normalised one behind `Re: ` or `Fwd: `, cut to the subject limit. */
export function prefixedSubject(prefix: 'Re' | 'Fwd', subject: string): string {
  return cut(`${prefix}: ${normalizeSubject(subject)}`, LIMITS.subject_chars_max);
}

function cut(text: string, max: number): string {
  return codePoints(text) <= max ? text : Array.from(text).slice(0, max).join('').trim();
}

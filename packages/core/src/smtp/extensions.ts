import type { SmtpReply } from './reply.ts';

/** Ways to log in that we know, the better one first (RFC 4616; LOGIN was never a standard and is everywhere). */
export const MECHANISMS = ['PLAIN', 'LOGIN'] as const;
export type Mechanism = (typeof MECHANISMS)[number];

/** What a server has said that it can do, as far as we use it (RFC 5321 section 4.1.1.1). */
export interface Extensions {
  starttls: boolean;
  /** The largest message it takes in octets, 0 when it names none; null without SIZE (RFC 1870). */
  size: number | null;
  /** Whether it takes what a report of a bounce is to name (RFC 3461). */
  dsn: boolean;
  /** In the order in which they were named, each once. */
  mechanisms: Mechanism[];
}

export const NO_EXTENSIONS: Extensions = { starttls: false, size: null, dsn: false, mechanisms: [] };

/**
 * Reads the answer to EHLO. Keywords stand in any case, mechanisms behind `AUTH` or, at servers older than the standard,
 * behind `AUTH=`; what is not understood is passed over.
 */
export function parseExtensions({ lines }: Pick<SmtpReply, 'lines'>): Extensions {
  const found: Extensions = { ...NO_EXTENSIONS, mechanisms: [] };
  // The first line is the server's name and greeting.
  for (const line of lines.slice(1)) {
    const [keyword = '', ...values] = line
      .replace(/^AUTH=/i, 'AUTH ')
      .trim()
      .toUpperCase()
      .split(/[ \t]+/);
    if (keyword === 'STARTTLS') found.starttls = true;
    else if (keyword === 'DSN') found.dsn = true;
    else if (keyword === 'SIZE') found.size = /^\d{1,20}$/.test(values[0] ?? '') ? Number(values[0]) : 0;
    else if (keyword === 'AUTH') {
      for (const value of values) {
        const known = MECHANISMS.find((mechanism) => mechanism === value);
        if (known !== undefined && !found.mechanisms.includes(known)) found.mechanisms.push(known);
      }
    }
  }
  return found;
}

/** The part of an untyped library that the Worker uses. */

declare module 'dns-packet' {
  export interface Question {
    type: 'A' | 'AAAA';
    name: string;
  }

  export interface Answer {
    type: string;
    name: string;
    data: string;
  }

  export interface Packet {
    type?: 'query' | 'response';
    id?: number;
    flags?: number;
    questions?: Question[];
    answers?: Answer[];
    rcode?: string;
    /** Set when the answer was cut to fit. */
    flag_tc?: boolean;
  }

  export const RECURSION_DESIRED: number;
  export function encode(packet: Packet): Buffer;
  export function decode(bytes: Buffer): Packet;
}

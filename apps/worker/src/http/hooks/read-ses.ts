import type { SesReader } from './ses-reader.ts';

/**
 * Until the reader of SES events is put here nothing can be made of them. SNS is told so, and sends them again: one that
 * was acknowledged unread would be lost.
 */
export const readSes: SesReader = () => {
  throw new Error('there is no reader of SES events yet');
};

import type { z } from 'zod';
import { exampleId } from '../schemas/common.ts';
import type { listEntry } from '../schemas/list-entry.ts';
import type { suppression } from '../schemas/suppression.ts';

export const SUPPRESSION: z.input<typeof suppression> = {
  address_hint: 's***@example.net',
  reason: 'hard_bounce',
  note: null,
  source_message_id: exampleId('msg'),
  created_at: '2026-10-09T10:12:05.120Z',
  expires_at: null,
};

/** One that somebody made by hand. */
export const MANUAL_SUPPRESSION: z.input<typeof suppression> = {
  ...SUPPRESSION,
  reason: 'manual',
  note: 'asked by phone',
  source_message_id: null,
};

export const LIST_ENTRY: z.input<typeof listEntry> = {
  direction: 'send',
  kind: 'block',
  entry: '@example.net',
  note: 'a competitor',
  created_at: '2026-10-09T10:12:05.120Z',
};

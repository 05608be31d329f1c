import { LIST_DIRECTIONS, LIST_KINDS } from '@pmail/core/policy/list-entry.ts';
import { z } from 'zod';
import { page, time } from './common.ts';
import { note } from './suppression.ts';

export const putListEntryBody = z.strictObject({ note: note.optional() }).meta({
  id: 'PutListEntryRequest',
  description: 'The whole of what is kept beside the entry: a note that is left out is removed.',
});

export const listEntry = z
  .object({
    direction: z.enum(LIST_DIRECTIONS),
    kind: z.enum(LIST_KINDS),
    entry: z.string().meta({ description: '`user@host` or `@host`, in lower case and A-labels.' }),
    note: z.string().nullable(),
    created_at: time,
  })
  .meta({ id: 'ListEntry' });

export const listEntryPage = page('ListEntryPage', listEntry);

import { z } from 'zod';
import { BOUNDS } from '../bounds.ts';
import { contactAddress, id, line, page, time } from './common.ts';

export const SUPPRESSION_REASONS = ['hard_bounce', 'complaint', 'unsubscribe', 'manual', 'provider'] as const;

export const note = line(BOUNDS.note_chars_max, 'Text for people.').nullable();

export const createSuppressionBody = z
  .strictObject({
    address: contactAddress.meta({ description: 'The address in any spelling.' }),
    reason: z.enum(['manual', 'unsubscribe']),
    note: note.optional(),
  })
  .meta({ id: 'CreateSuppressionRequest' });

export const deleteSuppressionBody = z
  .strictObject({
    confirm_complaint_removal: z
      .boolean()
      .optional()
      .meta({ description: 'Must be true to remove an address whose owner has complained.' }),
  })
  .meta({ id: 'DeleteSuppressionRequest' });

export const suppression = z
  .object({
    address_hint: z.string().meta({ description: 'What is kept of the address for people: `j***@example.com`.' }),
    reason: z.enum(SUPPRESSION_REASONS),
    note: z.string().nullable(),
    source_message_id: id('msg').nullable().meta({ description: 'The message whose bounce or complaint it was.' }),
    created_at: time,
    expires_at: time.nullable().meta({ description: 'When it ends by itself; null for never.' }),
  })
  .meta({ id: 'Suppression' });

export const suppressionPage = page('SuppressionPage', suppression);

import { LIMITS } from '@pmail/core/limits.ts';
import type { ThreadResource } from '@pmail/core/message/resource.ts';
import { z } from 'zod';
import { id, mailbox, page, time } from './common.ts';
import { DIRECTIONS, message } from './message.ts';

export const thread = z
  .object({
    id: id('thr'),
    subject: z.string(),
    participants: z.array(mailbox).meta({ description: `At most ${LIMITS.participants_count_max}.` }),
    message_count: z.int(),
    unread_count: z.int(),
    first_at: time,
    last_at: time,
    last_inbound_at: time.nullable(),
    last_direction: z.enum(DIRECTIONS),
    snippet: z.string(),
    labels: z.array(z.string()),
    archived: z.boolean(),
  })
  .meta({ id: 'Thread', description: 'A conversation. Counts and summary cover visible mail only.' });

thread satisfies z.ZodType<ThreadResource>;

export const threadPage = page('ThreadPage', thread);

export const threadWithMessages = thread
  .extend({
    messages: z.array(message).meta({ description: 'Oldest first.' }),
    next_cursor: z.string().nullable().meta({ description: 'For the next messages; null at the end.' }),
  })
  .meta({ id: 'ThreadWithMessages' });

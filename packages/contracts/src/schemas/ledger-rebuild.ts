import { z } from 'zod';
import { exampleId, id } from './common.ts';

const count = (description: string) => z.int().min(0).meta({ description });

export const ledgerRebuild = z
  .object({
    identity_id: id('idn'),
    complete: z.boolean().meta({
      description: 'Whether the ledger is whole. Until then repeat the request; the mailbox also goes on by itself.',
    }),
    copies: count('Sent copies looked at since the rebuild began.'),
    keys: count('Keys whose answer was made again for a message that is here.'),
    messages: count('Accepted sends the mailbox had lost; they are back as `uncertain`, and are not sent again.'),
  })
  .meta({ id: 'LedgerRebuild' });

export const LEDGER_REBUILD: z.input<typeof ledgerRebuild> = {
  identity_id: exampleId('idn'),
  complete: true,
  copies: 1_204,
  keys: 38,
  messages: 2,
};

import type { ComposeInput } from '@pmail/core/compose/types.ts';

export function sampleCompose(changes: Partial<ComposeInput> = {}): ComposeInput {
  return {
    message_id: 'msg_01JABCDEFGHJKMNPQRSTVWXYZ0',
    date: Date.UTC(2026, 9, 24, 20),
    from: { address: 'agent@agents.example', name: 'Agent' },
    reply_to: null,
    to: [{ address: 'jo@example.net', name: 'Jo' }],
    cc: [{ address: 'kim@example.net', name: '' }],
    subject: 'Hello',
    text: 'A text.',
    html: null,
    signature: { text: null, html: null },
    disclosure: { mode: 'none', text: '' },
    unsubscribe: null,
    list_unsubscribe: null,
    forwarded: null,
    in_reply_to: null,
    references: [],
    auto_submitted: false,
    hop: 1,
    headers: [],
    attachments: [],
    ...changes,
  };
}

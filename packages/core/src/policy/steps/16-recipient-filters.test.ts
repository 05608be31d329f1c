import { describe, expect, it } from 'vitest';
import { recipient, runStep } from '../context.fixture.ts';
import { recipientFilters } from './16-recipient-filters.ts';

describe('step 16: recipients that may not be written to', () => {
  it('marks each of them with its reason and leaves the others', () => {
    const recipients = [
      recipient('jo@example.net'),
      recipient('gone@example.net', 'cc', 'Gone'),
      recipient('kim@blocked.example', 'bcc'),
    ];
    const { refusal, draft } = runStep(
      recipientFilters,
      { directory: { suppressions: { 'gone@example.net': 'hard_bounce' }, send_block: ['@blocked.example'] } },
      { recipients },
    );
    expect(refusal).toBeNull();
    expect(draft.recipients).toEqual([
      recipient('jo@example.net'),
      { ...recipient('gone@example.net', 'cc', 'Gone'), filtered: 'hard_bounce' },
      { ...recipient('kim@blocked.example', 'bcc'), filtered: 'send_block' },
    ]);
  });

  it('does not refuse even when nobody is left', () => {
    const { refusal, draft } = runStep(
      recipientFilters,
      { directory: { suppressions: { 'jo@example.net': 'complaint' } } },
      { recipients: [recipient('jo@example.net')] },
    );
    expect(refusal).toBeNull();
    expect(draft.recipients.map(({ filtered }) => filtered)).toEqual(['complaint']);
  });
});

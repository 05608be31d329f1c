import { journalAddress } from '@pmail/core/cloudflare/message-id.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { JO } from '../mailbox/mailbox.fixture.ts';
import { accepted } from '../mailbox/transport.fixture.ts';
import { consumeEvent } from './event.ts';
import { type JournalMail, receiveJournal } from './journal.ts';
import { Service } from './service.fixture.ts';

let service: Service;
let id: MessageId;

beforeEach(async () => {
  service = await Service.create();
  ({ id } = await service.send({ to: [JO] }));
  service.transports.cloudflare.answers.push(accepted({ provider_message_id: '0101019ab3c4-msg-4471' }));
  await service.consume(id);
});

const mail = (changes: Partial<JournalMail> = {}): JournalMail => ({
  recipient: journalAddress(id, service.identity.id, 'agents.example'),
  message_id: '<7c1e@mx.cf.example>',
  from: service.address,
  subject: 'Your booking',
  ...changes,
});
const learned = (): string | null => service.rig.message(id).rfc_message_id;

describe('mail to the journal', () => {
  test('teaches the mailbox its Message-ID, and nothing is stored or told (case 38)', async () => {
    const events = service.rig.eventTypes;
    const rows = service.rig.rows('messages');
    await receiveJournal(service.world(), mail());
    expect(learned()).toBe('7c1e@mx.cf.example');
    expect(service.counts).toEqual(['journal_learned_total']);
    expect([service.rig.eventTypes, service.rig.rows('messages')]).toEqual([events, rows]);
  });

  test('the next message of the thread names that id, and never the one of the answer (case 38)', async () => {
    await receiveJournal(service.world(), mail());
    const { thread_id } = service.rig.message(id);
    const next = await service.send({ to: [JO], thread_id });
    expect(next.in_reply_to).toBe('7c1e@mx.cf.example');
  });

  test('is counted when it teaches nothing', async () => {
    await receiveJournal(service.world(), mail({ subject: 'Another' }));
    service.messageIds = { strategy: 'journal', domain: 'cloudflare.example' };
    await receiveJournal(service.world(), mail());
    expect(learned()).toBeNull();
    expect(service.counts).toEqual(['journal_ignored_total', 'journal_ignored_total']);
  });

  test.each<[string, Partial<JournalMail>]>([
    ['from nobody', { from: null }],
    ['that names no message', { recipient: 'journal+x.y@agents.example' }],
    [
      'of an identity that is not here',
      { recipient: journalAddress(`msg_${'0'.repeat(26)}`, `idn_${'0'.repeat(26)}`, 'agents.example') },
    ],
  ])('%s is dropped', async (_what, changes) => {
    await receiveJournal(service.world(), mail(changes));
    expect(learned()).toBeNull();
    expect(service.counts).toEqual(['journal_ignored_total']);
  });

  test.each([
    ['the directory', () => service.queries.failNext()],
    ['the mailbox', () => service.learns.failNext()],
  ])('when %s cannot be reached is lost, without a word', async (_what, spoil) => {
    spoil();
    await receiveJournal(service.world(), mail());
    expect(learned()).toBeNull();
    expect(service.rig.logged).toContain('journal_lost');
  });

  test('reports about it are acknowledged and change nothing', async () => {
    const event = {
      source: 'cloudflare',
      event_id: 'e-1',
      provider_message_id: '0101019ab3c4-msg-4471',
      sender: service.address,
      recipient: mail().recipient,
      subject: 'Your booking',
      kind: 'delivered',
      hard: false,
      smtp_code: '250',
      enhanced_code: null,
      smtp_response: null,
      outcome: 'delivered',
      suppress: null,
      occurred_at: service.now,
    } as const;
    for (const provider_message_id of ['0101019ab3c4-msg-4471', 'unknown']) {
      expect(await consumeEvent(service.world(), { ...event, provider_message_id })).toEqual({ kind: 'ack' });
    }
    expect(service.applies.calls).toBe(0);
    expect(service.rig.statuses(id)).toEqual({ [JO]: 'submitted' });
  });
});

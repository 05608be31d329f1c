import { parseAddress } from '@pmail/core/address/address.ts';
import { cloudflareEvent } from '@pmail/core/delivery/cloudflare-event.ts';
import { readDsn } from '@pmail/core/delivery/dsn.ts';
import { dsnEvents, ourMessageIn } from '@pmail/core/delivery/dsn-verdict.ts';
import type { DeliveryEvent } from '@pmail/core/delivery/events.ts';
import { sesEvent } from '@pmail/core/delivery/ses-event.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { type Fuzzer, fuzzer, must } from '@pmail/testkit/fuzz/fuzzer.ts';
import { foreignJson, foreignText } from '@pmail/testkit/fuzz/inputs.ts';
import fc from 'fast-check';

/** What must be true of any report, whoever sent it: it is written into rows and shown to customers. */
function checkEvent(event: DeliveryEvent): void {
  for (const address of [event.sender, event.recipient]) {
    const parsed = parseAddress(address);
    must(parsed.ok && parsed.address === address, 'an address is in its one form');
  }
  must(event.event_id !== '', 'a report has an id');
  must((event.smtp_response ?? '').length <= LIMITS.smtp_response_chars_max, 'a response fits its row');
  must(Number.isSafeInteger(event.occurred_at), 'it happened at a moment');
  must(event.kind !== 'delivered' || event.suppress === null, 'a delivery suppresses nobody');
}

const STATUS =
  'Reporting-MTA: dns; mx.example.net\r\nOriginal-Envelope-Id: env-1\r\n\r\nFinal-Recipient: rfc822; gone@example.net\r\n' +
  'Action: failed\r\nStatus: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1\r\n\tno such user\r\n';
const WORDS = ['\r\n\r\n', 'Final-Recipient: ', 'rfc822;', 'Action: ', 'Status: 5', ';', '\r', '\t', '<', '>', '@'];
const block = foreignText([STATUS, 'FINAL-RECIPIENT : rfc822;a@example.net\rACTION: delayed'], WORDS);
const field = fc.record({
  name: fc.constantFrom('message-id', 'from', 'subject', 'x-original-message-id', 'references', 'x-failed-recipients'),
  value: foreignText(['<01jd9q3v7m8x2c4n6b5k1r0e9t@acme.example.com>', 'gone@example.net'], WORDS),
});

export const bounceMails: Fuzzer = fuzzer(
  'bounce mails',
  fc.record({
    delivery_status: fc.array(block, { maxLength: 3 }),
    returned: fc.array(field, { maxLength: 4 }),
    headers: fc.array(field, { maxLength: 4 }),
    text: fc.option(
      foreignText(['Your message to <gone@example.net> could not be delivered: 550 5.1.1 unknown'], [...WORDS, '550 ']),
    ),
  }),
  (parts) => {
    const report = readDsn(parts);
    must(report.message_ids.length <= 50, 'ids are not without end');
    must(
      report.returned_ids.every((id) => report.message_ids.includes(id)),
      'ids that came back are among all',
    );
    const sender = 'desk@acme.example.com';
    ourMessageIn(report, sender);
    const known = ['gone@example.net', 'a@example.net'];
    const envelope = {
      report_id: 'rep-1',
      sender,
      null_sender: true,
      envelope_proof: true,
      received_at: 1_790_000_000_000,
    };
    const events = dsnEvents(report, envelope, known);
    must(events.length <= known.length, 'one report of each recipient');
    for (const event of events) {
      must(known.includes(event.recipient), 'only of those it was sent to');
      must((event.smtp_response ?? '').length <= LIMITS.smtp_response_chars_max, 'a response fits its row');
    }
    return events.length > 0;
  },
);

const AT = '2026-11-30T08:41:00.000Z';
const CLOUDFLARE = ['delivered', 'bounced', 'complained', 'rejected'].map((kind) => ({
  type: `cf.email.sending.message.${kind}`,
  payload: {
    eventId: 'e7',
    messageId: 'id-1',
    sender: 'desk@acme.example.com',
    recipient: 'jo@example.net',
    subject: 'Your booking',
    delivery: { smtpStatusCode: '250', smtpEnhancedStatusCode: '2.0.0', smtpResponse: 'OK' },
    bounce: { type: 'hard', reason: 'unknown user' },
    rejection: { party: 'recipient', reason: 'suppressed' },
  },
  metadata: { eventTimestamp: AT },
}));

export const cloudflareEvents: Fuzzer = fuzzer(
  'Cloudflare events',
  foreignJson(CLOUDFLARE, ['hard', 'cf.email.sending.message.failed', '550', AT]),
  (body) => {
    const parsed = cloudflareEvent(body);
    if (parsed.kind !== 'event') return parsed.kind;
    checkEvent(parsed.event);
    return true;
  },
);

const MAIL = {
  timestamp: AT,
  source: 'desk@acme.example.com',
  messageId: '0102-1',
  destination: ['jo@example.net'],
  commonHeaders: { from: ['"Desk, Acme" <desk@acme.example.com>'], to: ['jo@example.net'], subject: 'Your booking' },
  tags: { 'pmail-message': ['msg_01M5QR71Z3FKQSMYVVS5T0AKQP'] },
};
const SES = [
  {
    eventType: 'Bounce',
    bounce: {
      bounceType: 'Permanent',
      bounceSubType: 'General',
      bouncedRecipients: [{ emailAddress: 'jo@example.net', status: '5.1.1', diagnosticCode: 'smtp; 550 5.1.1 x' }],
      timestamp: AT,
      feedbackId: 'f',
    },
    mail: MAIL,
  },
  {
    notificationType: 'Complaint',
    complaint: { complainedRecipients: [{ emailAddress: 'jo@example.net' }], timestamp: AT },
    mail: MAIL,
  },
  {
    eventType: 'Delivery',
    delivery: { recipients: ['jo@example.net'], timestamp: AT, smtpResponse: '250 OK' },
    mail: MAIL,
  },
  { eventType: 'Send', send: {}, mail: MAIL },
  {
    eventType: 'DeliveryDelay',
    deliveryDelay: { delayedRecipients: [{ emailAddress: 'jo@example.net' }] },
    mail: MAIL,
  },
];

export const sesEvents: Fuzzer = fuzzer(
  'SES events',
  foreignJson(SES, ['Bounce', 'Transient', 'Reject', AT]),
  (body) => {
    const parsed = sesEvent(body, { notification_id: 'sns-1', at: 1_790_000_000_000, region: 'eu-west-1' });
    if (parsed.kind !== 'events') return parsed.kind;
    for (const event of parsed.events) checkEvent(event);
    const ids = parsed.events.map(({ event_id }) => event_id);
    must(new Set(ids).size === ids.length, 'each report has an id of its own');
    return true;
  },
);

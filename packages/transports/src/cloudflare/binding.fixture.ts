import type { CloudflareMail, CloudflareRecipient } from '@pmail/core/cloudflare/send-request.ts';
import type { OutgoingMessage } from '@pmail/core/transport/types.ts';
import type { Situation, TakenMail } from '../contract.ts';

export const JOURNAL = 'journal+01jd9q3v7m8x2c4n6b5k1r0e9t.01jd9q3v7m8x2c4n6b5k1r0e9s@agents.example';

export function outgoing(changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return {
    message_id: 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T',
    from: { address: 'desk.acme@agents.example', name: 'Desk' },
    reply_to: 'desk.acme+t01.abcdefgh@agents.example',
    to: ['jo@example.net'],
    cc: ['kim@example.org'],
    bcc: ['audit@example.com'],
    subject: 'Your booking 4471',
    text: 'Confirmed.',
    html: null,
    headers: [{ name: 'X-Pylota-Mail-Hop', value: '1' }],
    attachments: [],
    mime: Uint8Array.of(0x46, 0x72, 0x6f, 0x6d),
    journal_bcc: JOURNAL,
    ...changes,
  };
}

/** The binding in memory: takes what it is given, and answers as the situation has it. */
export class BindingDouble {
  readonly calls: CloudflareMail[] = [];
  readonly taken: TakenMail[] = [];
  readonly #situation: Situation;

  constructor(situation: Situation) {
    this.#situation = situation;
  }

  send = async (mail: CloudflareMail): Promise<unknown> => {
    this.calls.push(mail);
    switch (this.#situation) {
      case 'accepts':
        return this.#take(mail);
      case 'refuses':
        throw coded('E_VALIDATION_ERROR');
      case 'puts_off':
        throw coded('E_RATE_LIMIT_EXCEEDED');
      case 'loses_answer':
        this.#take(mail);
        throw new TypeError('Network connection lost.');
      case 'unclear':
        throw coded('E_INTERNAL_SERVER_ERROR');
      case 'silent':
        return new Promise(() => undefined);
      case 'fails_here':
        throw new Error('no such binding');
      case 'takes_some':
        throw new Error('not one of Cloudflare');
    }
  };

  #take({ to = [], cc = [], bcc = [] }: CloudflareMail): { messageId: string } {
    const recipients = [...to, ...cc, ...bcc].map(addressOf);
    // The hidden copy for us is no recipient of the message.
    this.taken.push({ recipients: recipients.filter((address) => address !== JOURNAL), mime: null });
    return { messageId: `0101019ab3c4-msg-${this.taken.length}` };
  }
}

function addressOf(recipient: CloudflareRecipient): string {
  return typeof recipient === 'string' ? recipient : recipient.email;
}

export function coded(code: string): Error {
  return Object.assign(new Error('no'), { code });
}

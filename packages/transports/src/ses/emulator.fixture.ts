import { fromBase64 } from '@pmail/core/hash.ts';
import { signAws } from '@pmail/core/ses/sigv4.ts';
import type { OutgoingMessage } from '@pmail/core/transport/types.ts';
import type { Situation, TakenMail } from '../contract.ts';
import type { SesInit } from './transport.ts';

export const ACCOUNT = {
  region: 'eu-west-1',
  access_key_id: 'AKIAIOSFODNN7EXAMPLE',
  secret_access_key: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
};

export const NOW = Date.UTC(2026, 10, 30, 9);

export function outgoing(changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return {
    message_id: 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T',
    from: { address: 'desk@acme.example.com', name: 'Desk' },
    reply_to: null,
    to: ['jo@example.net'],
    cc: ['kim@example.org'],
    bcc: ['audit@example.com'],
    subject: 'Your booking',
    text: null,
    html: null,
    headers: [],
    attachments: [],
    mime: Uint8Array.of(0x46, 0x72, 0x6f, 0x6d, 0x3a, 0xff, 0x00, 0x0d, 0x0a),
    journal_bcc: null,
    ...changes,
  };
}

export interface SendBody {
  FromEmailAddress: string;
  Destination: { ToAddresses: string[]; CcAddresses: string[]; BccAddresses: string[] };
  Content: { Raw: { Data: string } };
  ConfigurationSetName: string;
  EmailTags: { Name: string; Value: string }[];
}

/** SES in memory: checks what it is asked, and answers as the situation has it. */
export class SesDouble {
  readonly taken: TakenMail[] = [];
  readonly requests: { url: string; init: SesInit; body: SendBody }[] = [];
  readonly #situation: Situation;

  constructor(situation: Situation) {
    this.#situation = situation;
  }

  fetch = async (url: string, init: SesInit): Promise<Response> => {
    if (this.#situation === 'fails_here') throw new TypeError('fetch failed');
    await expectSigned(url, init);
    const body = JSON.parse(init.body) as SendBody;
    this.requests.push({ url, init, body });
    const take = (): Response => {
      const { ToAddresses, CcAddresses, BccAddresses } = body.Destination;
      const mime = fromBase64(body.Content.Raw.Data);
      if (mime === undefined) throw new Error('the raw message is not base64');
      this.taken.push({ recipients: [...ToAddresses, ...CcAddresses, ...BccAddresses], mime });
      return Response.json({ MessageId: `0102-${this.taken.length}` });
    };
    switch (this.#situation) {
      case 'accepts':
        return take();
      case 'refuses':
        return failure(400, 'MessageRejected');
      case 'puts_off':
        return failure(429, 'TooManyRequestsException');
      case 'loses_answer':
        take();
        throw new TypeError('the connection was lost');
      case 'unclear':
        return failure(500, 'InternalServiceErrorException');
      case 'silent':
        return new Promise(() => undefined);
      case 'takes_some':
        throw new Error('not one of SES');
    }
  };
}

function failure(status: number, type: string): Response {
  return Response.json({ message: 'no' }, { status, headers: { 'x-amzn-errortype': `${type}:http://internal/` } });
}

/** A request whose signature is wrong would be refused by the real one. */
async function expectSigned(url: string, { method, headers, body }: SesInit): Promise<void> {
  const { host, pathname } = new URL(url);
  const { authorization, ...rest } = headers;
  const signed = await signAws(
    { method, path: pathname, query: [], headers: [['host', host], ...Object.entries(rest)], body },
    ACCOUNT,
    { region: ACCOUNT.region, service: 'ses' },
    NOW,
  );
  if (signed.authorization !== authorization) throw new Error('the signature does not match');
}

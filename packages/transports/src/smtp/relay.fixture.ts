import { utf8 } from '@pmail/core/hash.ts';
import type { RelayIssue } from '@pmail/core/smtp/exchange-types.ts';
import type { RelaySettings } from '@pmail/core/smtp/settings.ts';
import type { OutgoingMessage, TransportResult } from '@pmail/core/transport/types.ts';
import type { RelayScript, ScriptStep } from '@pmail/testkit/smtp/script.ts';
import { ScriptedRelay } from '@pmail/testkit/smtp/scripted-relay.ts';
import { type RelayPorts, smtpTransport } from './transport.ts';

/** A domain with a relay that plays scripts, and a message for it. */

export const HOST = 'smtp.relay.example.net';
export const DESK = 'desk@acme.example.com';
export const JO = 'jo@example.net';
export const KIM = 'kim@example.org';
export const LEE = 'lee@example.org';
export const LOGIN = { username: 'acme-desk', password: 'correct horse' };
export const RFC_ID = '01jd9q3v7m8x2c4n6b5k1r0e9t@acme.example.com';
export const ENVELOPE = '01jd9q3v7m8x2c4n6b5k1r0e9t.00112233445566778899aabbccddeeff';
export const MINUTE = 60_000;

const MIME = ['From: Desk <desk@acme.example.com>', `Message-ID: <${RFC_ID}>`, '', 'Hello', '.', '..two', ''].join(
  '\r\n',
);

export function letter(changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return {
    message_id: 'msg_01JD9Q3V7M8X2C4N6B5K1R0E9T',
    from: { address: DESK, name: 'Desk' },
    reply_to: null,
    to: [JO],
    cc: [],
    bcc: [],
    subject: 'Hello',
    text: null,
    html: null,
    headers: [],
    attachments: [],
    mime: utf8(MIME),
    journal_bcc: null,
    ...changes,
  };
}

export const GREETING: ScriptStep = { expect: '^$connect', send: [`220 ${HOST} ESMTP`] };
export const EHLO: ScriptStep = {
  expect: '^EHLO ',
  send: [`250-${HOST}`, '250-SIZE 35882577', '250-8BITMIME', '250-AUTH PLAIN LOGIN', '250 ENHANCEDSTATUSCODES'],
};
export const AUTH: ScriptStep = { expect: '^AUTH PLAIN ', send: ['235 2.7.0 Accepted'] };
export const MAIL: ScriptStep = { expect: '^MAIL FROM:', send: ['250 2.1.0 Ok'] };
export const RCPT: ScriptStep = { expect: '^RCPT TO:', send: ['250 2.1.5 Ok'] };
export const DATA: ScriptStep = { expect: '^DATA$', send: ['354 End data with <CR><LF>.<CR><LF>'] };
export const BODY: ScriptStep = { expect: 'BODY', send: ['250 2.0.0 Ok: queued as 4471'] };
export const RSET: ScriptStep = { expect: '^RSET$', send: ['250 2.0.0 Ok'] };
export const QUIT: ScriptStep = { expect: '^QUIT$', send: ['221 2.0.0 Bye'], close: true };

export const LOGGED_IN = [GREETING, EHLO, AUTH];
export const UP_TO_DATA = [...LOGGED_IN, MAIL, RCPT, DATA];
export const ALL = [...UP_TO_DATA, BODY, QUIT];

export const PLAIN_EHLO: ScriptStep = { expect: '^EHLO ', send: [`250-${HOST}`, '250-SIZE 1000', '250 STARTTLS'] };
export const STARTTLS: ScriptStep = { expect: '^STARTTLS$', send: ['220 2.0.0 Ready'], tls: HOST };
export const UP_TO_TLS = [GREETING, PLAIN_EHLO];

/** A script on port 465, or with STARTTLS on port 587 when it does that. */
export function script(...steps: ScriptStep[]): RelayScript {
  const starttls = steps.some(({ expect }) => expect === '^STARTTLS$');
  return {
    relay: { port: starttls ? 587 : 465, host: HOST, tls: starttls ? 'starttls' : 'implicit', from: DESK },
    recipients: [JO],
    steps,
  };
}

export interface RelayRig {
  relay: ScriptedRelay;
  checks: { domain: string; issue: RelayIssue }[];
  ports: RelayPorts;
  /** Sends by the relay in virtual time. */
  send: (message?: OutgoingMessage, deadlineMs?: number) => Promise<TransportResult>;
  /** What the client said on the n-th connection. */
  lines: (session?: number) => string[];
}

export function rig(
  scripts: ConstructorParameters<typeof ScriptedRelay>[0],
  changes: Partial<RelayPorts> = {},
): RelayRig {
  const relay = new ScriptedRelay(scripts);
  const checks: RelayRig['checks'] = [];
  const first = scripts.find((entry) => typeof entry !== 'string');
  const settings: RelaySettings = {
    host: first?.relay.host ?? HOST,
    port: first?.relay.port ?? 465,
    ...LOGIN,
    probe_from: 'postmaster@acme.example.com',
  };
  const ports: RelayPorts = {
    // The names of the scripts are those of examples, which no relay may really have.
    rules: { api_host: 'api.pmail.test', platform_domain: 'agents.pmail.test', allow_loopback: false },
    ehlo_name: 'api.pmail.test',
    relayOf: async () => ({ ...settings, host: settings.host }),
    envelopeIdOf: async () => ENVELOPE,
    resolve: async () => ['8.8.8.8'],
    requestDomainCheck: async (domain, issue) => {
      checks.push({ domain, issue });
    },
    open: relay.open,
    clock: relay.clock,
    ...changes,
  };
  const transport = smtpTransport(ports);
  return {
    relay,
    checks,
    ports,
    send: (message = letter(), deadlineMs = 4 * MINUTE) => transport.send(message, deadlineMs),
    lines: (session = 0) => relay.sessions[session]?.player.lines ?? [],
  };
}

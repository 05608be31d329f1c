import { LIMITS } from '../limits.ts';
import { cutUnits } from '../message/text.ts';
import type { RecipientRefusal } from '../transport/types.ts';
import type { Advance, Exchange, ExchangeCommand, ExchangeResult, RelayIssue, Said, Step } from './exchange-types.ts';
import type { SmtpReply } from './reply.ts';

/** How exchanges end, and what is said about it. */

/** What a relay said, as it may be kept. */
export function saidBy({ code, enhanced, text }: SmtpReply): Said {
  const detail = [code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
  return { code, enhanced_code: enhanced, detail: cutUnits(detail, LIMITS.smtp_response_chars_max) };
}

/** A refusal of one recipient. Code and text stand apart there, so the text does not repeat the code. */
export function refusalOf(address: string, { code, enhanced, text }: SmtpReply): RecipientRefusal {
  const detail = cutUnits(text === '' ? code : text, LIMITS.smtp_response_chars_max);
  return { address, smtp_code: code, enhanced_code: enhanced, detail };
}

/** Ends without another word: nothing is written to a server that is gone, or that does not answer what it is asked. */
export function hangUp(exchange: Exchange, result: ExchangeResult): Advance {
  return { exchange: { ...exchange, step: 'over', result: exchange.result ?? result }, commands: [{ kind: 'close' }] };
}

/** Ends as one should (RFC 5321 section 4.1.1.10); the answer no longer matters. */
export function takeLeave(exchange: Exchange, result: ExchangeResult, first: 'rset' | 'quit' = 'quit'): Advance {
  return {
    exchange: { ...exchange, step: first, result },
    commands: [{ kind: 'wait', ms: LIMITS.smtp_farewell_ms_max }, plainLine(first === 'rset' ? 'RSET' : 'QUIT')],
  };
}

export function plainLine(line: string): ExchangeCommand {
  return { kind: 'write', line, secret: false };
}

export function retryLater(exchange: Exchange, said: Said, refused = [...exchange.refused]): ExchangeResult {
  return { kind: 'retry_later', ...said, refused };
}

/** The whole message is refused: each recipient by its own refusal, the others by this one. */
export function rejectAll({ plan, refused }: Exchange, reply: SmtpReply): ExchangeResult {
  const own = new Map(refused.map((refusal) => [refusal.address, refusal]));
  return {
    kind: 'rejected',
    reason: 'provider_validation',
    issue: null,
    ...saidBy(reply),
    refused: plan.recipients.map((address) => own.get(address) ?? refusalOf(address, reply)),
  };
}

/** The relay cannot be used as it is set up, which is the domain's trouble and not this message's. */
export function rejectDomain(issue: RelayIssue, said: Said): ExchangeResult {
  return { kind: 'rejected', reason: 'sender_domain_unavailable', issue, ...said, refused: [] };
}

const WAITING_FOR: Record<Step, string> = {
  connect: 'the connection',
  greeting: 'the greeting',
  ehlo: 'the answer to EHLO',
  starttls: 'the answer to STARTTLS',
  tls: 'the TLS handshake',
  ehlo_secure: 'the answer to EHLO',
  auth: 'the answer to AUTH',
  mail: 'the answer to MAIL',
  rcpt: 'the answer to RCPT',
  data: 'the answer to DATA',
  body: 'the message to be taken',
  dot: 'the answer to the message',
  rset: 'the answer to RSET',
  quit: 'the answer to QUIT',
  over: 'nothing',
};

export type Loss = 'smtp_connection_lost' | 'smtp_timeout' | 'smtp_bad_reply' | 'smtp_out_of_step';

const HAPPENED: Record<Loss, string> = {
  smtp_connection_lost: 'the connection was lost',
  smtp_timeout: 'the time was over',
  smtp_bad_reply: 'something that is no reply came',
  smtp_out_of_step: 'something that was not asked for came',
};

/**
 * The exchange broke. Before the final dot nothing was sent, so it may be tried again; from the dot on nobody knows.
 * What was refused before stays refused, unless answers may have been taken for those to other questions.
 */
export function lose(exchange: Exchange, loss: Loss): Advance {
  const { step } = exchange;
  const detail = `${HAPPENED[loss]} while waiting for ${WAITING_FOR[step]}`;
  if (step === 'dot') {
    const reason = loss === 'smtp_timeout' ? 'transport_timeout' : 'transport_connection_lost';
    return hangUp(exchange, { kind: 'unknown', reason, detail });
  }
  const code = loss === 'smtp_connection_lost' ? (LOST_CODES[step] ?? loss) : loss;
  const refused = loss === 'smtp_out_of_step' ? [] : [...exchange.refused];
  return hangUp(exchange, retryLater(exchange, { code, enhanced_code: null, detail }, refused));
}

/** Losses that have a better name. */
const LOST_CODES: { [S in Step]?: string } = { connect: 'smtp_connect_failed', tls: 'smtp_tls_failed' };

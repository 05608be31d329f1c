import type { Address } from '../address/address.ts';
import { LIMITS } from '../limits.ts';
import { cutUnits } from '../message/text.ts';
import {
  hangUp,
  lose,
  plainLine,
  refusalOf,
  rejectAll,
  rejectDomain,
  retryLater,
  saidBy,
  takeLeave,
} from './endings.ts';
import type { Advance, Exchange, ExchangeCommand, ExchangeResult, Step } from './exchange-types.ts';
import { NO_EXTENSIONS, parseExtensions } from './extensions.ts';
import { isAboutMechanism, loginAttempt, mechanismsToTry, withoutText } from './login.ts';
import type { SmtpReply } from './reply.ts';

/** What each whole answer of a relay leads to, step by step. */

export function answered(exchange: Exchange, reply: SmtpReply): Advance {
  // The server is going away, whatever it was asked (RFC 5321 section 3.8). From the final dot on that is no refusal.
  if (reply.code === '421') {
    if (exchange.step === 'dot') return lose(exchange, 'smtp_connection_lost');
    return hangUp(exchange, retryLater(exchange, saidBy(exchange.step === 'auth' ? withoutText(reply) : reply)));
  }
  switch (exchange.step) {
    case 'greeting':
      return reply.code === '220' ? hello(exchange, 'ehlo') : refusedForNow(exchange, reply);
    case 'ehlo':
    case 'ehlo_secure':
      return reply.code === '250'
        ? introduced({ ...exchange, extensions: parseExtensions(reply) })
        : refusedForNow(exchange, reply);
    case 'starttls':
      return tlsAnswered(exchange, reply);
    case 'auth':
      return loginAnswered(exchange, reply);
    case 'mail':
      return mailAnswered(exchange, reply);
    case 'rcpt':
      return recipientAnswered(exchange, reply);
    case 'data':
      return dataAnswered(exchange, reply);
    case 'dot':
      return messageAnswered(exchange, reply);
    case 'connect':
    case 'tls':
    case 'body':
    case 'rset':
    case 'quit':
    case 'over':
      return lose(exchange, 'smtp_out_of_step');
  }
}

/** Introduces ourselves; what the server could before a handshake counts no more (RFC 3207 section 4.2). */
export function hello(exchange: Exchange, step: 'ehlo' | 'ehlo_secure'): Advance {
  return ask({ ...exchange, extensions: NO_EXTENSIONS }, step, plainLine(`EHLO ${exchange.plan.ehlo_name}`));
}

function ask(exchange: Exchange, step: Step, command: ExchangeCommand): Advance {
  return {
    exchange: { ...exchange, step },
    commands: [{ kind: 'wait', ms: LIMITS.smtp_command_ms_max }, command],
  };
}

/** Refused before anything was asked of it that is about this message, so later may be better. */
function refusedForNow(exchange: Exchange, reply: SmtpReply): Advance {
  if (!/^[45]/.test(reply.code)) return lose(exchange, 'smtp_out_of_step');
  return takeLeave(exchange, retryLater(exchange, saidBy(reply)));
}

function introduced(exchange: Exchange): Advance {
  if (exchange.plan.tls === 'implicit' || exchange.step === 'ehlo_secure') {
    const left = mechanismsToTry(exchange.extensions.mechanisms);
    return tryLogin({ ...exchange, login: { left, responses: [] } }, null);
  }
  if (exchange.extensions.starttls) return ask(exchange, 'starttls', plainLine('STARTTLS'));
  return takeLeave(exchange, rejectDomain('smtp_tls_required', NO_TLS));
}

const NO_TLS = { code: 'smtp_tls_required', enhanced_code: null, detail: 'the relay does not offer TLS' };

function tlsAnswered(exchange: Exchange, reply: SmtpReply): Advance {
  if (reply.code === '220') return ask(exchange, 'tls', { kind: 'start_tls' });
  if (reply.code.startsWith('5')) return takeLeave(exchange, rejectDomain('smtp_tls_required', saidBy(reply)));
  return refusedForNow(exchange, reply);
}

/** Begins with the next mechanism; when none is left, `reply` was the last refusal. */
function tryLogin(exchange: Exchange, reply: SmtpReply | null): Advance {
  const [mechanism, ...left] = exchange.login.left;
  if (mechanism !== undefined) {
    const { command, responses } = loginAttempt(mechanism, exchange.plan.login);
    return ask({ ...exchange, login: { left, responses } }, 'auth', secretLine(command));
  }
  const said =
    reply === null
      ? { code: 'smtp_auth_unavailable', enhanced_code: null, detail: 'the relay offers no login that we know' }
      : saidBy({ ...reply, text: 'the relay refused the login' });
  return takeLeave(exchange, rejectDomain('smtp_auth_failed', said));
}

function secretLine(line: string): ExchangeCommand {
  return { kind: 'write', line, secret: true };
}

/** The server's own words are not kept here: they may repeat what they are about. */
function loginAnswered(exchange: Exchange, spoken: SmtpReply): Advance {
  const reply = withoutText(spoken);
  if (reply.code === '235') return mailFrom(exchange);
  if (reply.code === '334') {
    const [response, ...responses] = exchange.login.responses;
    if (response === undefined) return lose(exchange, 'smtp_out_of_step');
    return ask({ ...exchange, login: { ...exchange.login, responses } }, 'auth', secretLine(response));
  }
  if (isAboutMechanism(reply)) return tryLogin(exchange, reply);
  if (reply.code.startsWith('5')) return tryLogin({ ...exchange, login: { left: [], responses: [] } }, reply);
  return refusedForNow(exchange, reply);
}

function mailFrom(exchange: Exchange): Advance {
  const { from, size, envelope_id: envelope } = exchange.plan;
  const { size: takesSize, dsn } = exchange.extensions;
  const parameters = takesSize === null ? '' : ` SIZE=${size}`;
  // Its header is enough to know a message by, and its text is nobody else's business.
  const report = dsn && envelope !== null ? ` RET=HDRS ENVID=${envelope}` : '';
  return ask(exchange, 'mail', plainLine(`MAIL FROM:<${from}>${parameters}${report}`));
}

function mailAnswered(exchange: Exchange, reply: SmtpReply): Advance {
  if (reply.code.startsWith('2')) return nextRecipient(exchange);
  if (reply.code.startsWith('5')) return takeLeave(exchange, rejectAll(exchange, reply));
  return refusedForNow(exchange, reply);
}

/** Whom the exchange asks about: as many as were answered for are behind it. */
function asked({ plan, accepted, refused, deferred }: Exchange): Address | undefined {
  return plan.recipients[accepted.length + refused.length + deferred.length];
}

function nextRecipient(exchange: Exchange): Advance {
  const address = asked(exchange);
  if (address !== undefined) return ask(exchange, 'rcpt', plainLine(`RCPT TO:<${address}>`));
  if (exchange.accepted.length > 0) return ask(exchange, 'data', plainLine('DATA'));
  const [waiting] = exchange.deferred;
  if (waiting !== undefined) return takeLeave(exchange, retryLater(exchange, waiting.said), 'rset');
  return takeLeave(exchange, everyoneRefused(exchange), 'rset');
}

/** Nobody is left; the message is refused with the words about the first. */
function everyoneRefused({ refused }: Exchange): ExchangeResult {
  const { smtp_code: code, enhanced_code, detail } = refused[0] ?? NOBODY;
  const text = detail === code ? null : detail;
  const said = [code, enhanced_code, text].filter((part) => part !== null).join(' ');
  return {
    kind: 'rejected',
    reason: 'provider_validation',
    issue: null,
    code: code ?? '',
    enhanced_code,
    detail: cutUnits(said, LIMITS.smtp_response_chars_max),
    refused: [...refused],
  };
}

const NOBODY = { smtp_code: null, enhanced_code: null, detail: 'the message has no recipients' };

function recipientAnswered(exchange: Exchange, reply: SmtpReply): Advance {
  const address = asked(exchange) ?? '';
  if (reply.code.startsWith('2')) return nextRecipient({ ...exchange, accepted: [...exchange.accepted, address] });
  if (reply.code.startsWith('4')) {
    return nextRecipient({ ...exchange, deferred: [...exchange.deferred, { address, said: saidBy(reply) }] });
  }
  if (reply.code.startsWith('5')) {
    return nextRecipient({ ...exchange, refused: [...exchange.refused, refusalOf(address, reply)] });
  }
  return lose(exchange, 'smtp_out_of_step');
}

function dataAnswered(exchange: Exchange, reply: SmtpReply): Advance {
  if (reply.code === '354') return ask(exchange, 'body', { kind: 'write_body' });
  if (reply.code.startsWith('5')) return takeLeave(exchange, rejectAll(exchange, reply));
  return refusedForNow(exchange, reply);
}

function messageAnswered(exchange: Exchange, reply: SmtpReply): Advance {
  if (reply.code.startsWith('2')) {
    const deferred = exchange.deferred.map(({ address }) => address);
    return takeLeave(exchange, { kind: 'accepted', ...saidBy(reply), refused: [...exchange.refused], deferred });
  }
  if (reply.code.startsWith('4')) return takeLeave(exchange, retryLater(exchange, saidBy(reply)));
  if (reply.code.startsWith('5')) return takeLeave(exchange, rejectAll(exchange, reply));
  return lose(exchange, 'smtp_out_of_step');
}

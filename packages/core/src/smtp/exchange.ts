import { LIMITS } from '../limits.ts';
import { answered, hello } from './answers.ts';
import { hangUp, lose, plainLine, retryLater, saidBy } from './endings.ts';
import type { Advance, Exchange, ExchangeEvent, ExchangePlan } from './exchange-types.ts';
import { NO_EXTENSIONS } from './extensions.ts';
import { withoutSecrets } from './login.ts';
import { EMPTY_READER, readReply } from './reply.ts';

/**
 * The client's side of an exchange with a relay (RFC 5321, RFC 3207, RFC 4954) as a function from what happens to what is
 * done next. It knows no socket and no clock: times are asked for with `wait` and come back as `timeout`. One command at
 * a time, each after the whole answer to the one before; BDAT, 8BITMIME and pipelining are never used.
 */
export function begin(plan: ExchangePlan): Advance {
  const exchange: Exchange = {
    plan,
    step: 'connect',
    reader: EMPTY_READER,
    extensions: NO_EXTENSIONS,
    login: { left: [], responses: [] },
    accepted: [],
    refused: [],
    deferred: [],
    result: null,
  };
  // Until it stands, with TLS where it begins with that.
  return { exchange, commands: [{ kind: 'open' }, { kind: 'wait', ms: LIMITS.smtp_connect_ms_max }] };
}

export function advance(exchange: Exchange, event: ExchangeEvent): Advance {
  const { step } = exchange;
  if (step === 'over') return { exchange, commands: [] };
  if (exchange.result !== null) return partWays(exchange, event);
  switch (event.kind) {
    case 'connected':
      return step === 'connect'
        ? {
            exchange: { ...exchange, step: 'greeting' },
            commands: [{ kind: 'wait', ms: LIMITS.smtp_command_ms_max }],
          }
        : lose(exchange, 'smtp_out_of_step');
    case 'secured':
      return step === 'tls' ? hello(exchange, 'ehlo_secure') : lose(exchange, 'smtp_out_of_step');
    case 'received':
      return received(exchange, event.bytes);
    case 'body_progress':
      return step === 'body'
        ? { exchange, commands: [{ kind: 'wait', ms: LIMITS.smtp_command_ms_max }] }
        : lose(exchange, 'smtp_out_of_step');
    case 'body_written':
      return step === 'body'
        ? {
            exchange: { ...exchange, step: 'dot' },
            commands: [{ kind: 'wait', ms: LIMITS.smtp_final_reply_ms_max }, { kind: 'write_dot' }],
          }
        : lose(exchange, 'smtp_out_of_step');
    case 'closed':
    case 'failed':
      return lose(exchange, 'smtp_connection_lost');
    case 'timeout':
      return lose(exchange, 'smtp_timeout');
  }
}

function received(exchange: Exchange, bytes: Uint8Array): Advance {
  if (bytes.length === 0) return { exchange, commands: [] };
  if (exchange.step === 'body') return interrupted(exchange, bytes);
  if (exchange.step === 'connect' || exchange.step === 'tls') return lose(exchange, 'smtp_out_of_step');
  const read = readReply(exchange.reader, bytes);
  switch (read.kind) {
    case 'more':
      return { exchange: { ...exchange, reader: read.reader }, commands: [] };
    case 'fault':
      return lose(exchange, 'smtp_bad_reply');
    case 'reply': {
      const reply = withoutSecrets(read.reply, exchange.plan.login);
      const next = answered({ ...exchange, reader: EMPTY_READER }, reply);
      if (read.used === bytes.length) return next;
      // More came than was asked for. At STARTTLS it could be an attacker's, to be taken for the server's once the line
      // is secure (RFC 3207 section 6); anywhere it would be taken for the answer to a command not sent yet.
      return next.exchange.result === null
        ? lose(exchange, 'smtp_out_of_step')
        : hangUp(exchange, next.exchange.result);
    }
  }
}

/** The server speaks while it should listen, as it does before it goes away. The final dot will not follow. */
function interrupted(exchange: Exchange, bytes: Uint8Array): Advance {
  const read = readReply(exchange.reader, bytes);
  if (read.kind !== 'reply' || !/^[45]/.test(read.reply.code)) return lose(exchange, 'smtp_out_of_step');
  const reply = withoutSecrets(read.reply, exchange.plan.login);
  return hangUp(exchange, retryLater(exchange, saidBy(reply)));
}

/** The result stands. After RSET follows QUIT, after anything else the end. */
function partWays(exchange: Exchange, event: ExchangeEvent): Advance {
  const over: Advance = { exchange: { ...exchange, step: 'over' }, commands: [{ kind: 'close' }] };
  if (event.kind !== 'received') return over;
  const read = readReply(exchange.reader, event.bytes);
  if (read.kind === 'more') return { exchange: { ...exchange, reader: read.reader }, commands: [] };
  if (read.kind === 'fault' || exchange.step !== 'rset' || read.used < event.bytes.length) return over;
  return { exchange: { ...exchange, step: 'quit', reader: EMPTY_READER }, commands: [plainLine('QUIT')] };
}

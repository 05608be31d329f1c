import { LIMITS } from '@pmail/core/limits.ts';
import { advance, begin } from '@pmail/core/smtp/exchange.ts';
import type {
  Advance,
  Exchange,
  ExchangeCommand,
  ExchangeEvent,
  ExchangePlan,
} from '@pmail/core/smtp/exchange-types.ts';
import { EMPTY_READER, type ReadStep, readReply } from '@pmail/core/smtp/reply.ts';
import { Chance, latin1, nextEvent, reply, TEMPERS } from './fuzz-server.ts';

/**
 * Random servers against the rules of relays. An independent and simple-minded reader of replies says what was whole and
 * what was left over; whatever the exchange does is held against that.
 */

export interface FuzzReport {
  inputs: number;
  seed: number;
  /** How many exchanges ended in which way. */
  ends: Record<string, number>;
  /** How many got as far as the final dot. */
  dots: number;
  /** How many replies that came without an exchange were read as what. */
  replies: Record<string, number>;
  events: number;
}

/**
 * @param from the number of the first input, to do a run in parts
 * @throws with the number of the first input that goes wrong
 */
export function fuzzRelay(inputs: number, seed: number, from = 0): FuzzReport {
  const report: FuzzReport = { inputs, seed, ends: {}, dots: 0, replies: {}, events: 0 };
  for (let n = from; n < from + inputs; n++) {
    const own = (seed + Math.imul(n, 0x9e3779b1)) >>> 0;
    try {
      const chance = new Chance(own);
      if (n % 4 === 3) readAnyhow(chance, report);
      else exchangeAnyhow(chance, report);
    } catch (error) {
      throw new Error(`input ${n} of seed ${seed} went wrong: ${String(error)}`, { cause: error });
    }
  }
  return report;
}

function must(holds: boolean, what: string, about: unknown): asserts holds {
  if (!holds) throw new Error(`${what}: ${JSON.stringify(about)?.slice(0, 2_000)}`);
}

/** The first whole reply in a text, by looking at all of it at once; its end, or what is wrong. */
function reference(text: string): { code: string; end: number } | 'more' | 'wrong' {
  let code: string | null = null;
  let lines = 0;
  for (let from = 0; ; ) {
    const at = text.indexOf('\n', from);
    const raw = text.slice(from, at < 0 ? undefined : at);
    const line = raw.replace(/\r*$/, '');
    if (at < 0) {
      if (raw.length > LIMITS.smtp_reply_line_bytes_max + 1) return 'wrong';
      return 'more';
    }
    if (raw.length > LIMITS.smtp_reply_line_bytes_max + 1 || line.length > LIMITS.smtp_reply_line_bytes_max)
      return 'wrong';
    const separator = line[3] ?? ' ';
    if (!/^[1-5][0-9][0-9]$/.test(line.slice(0, 3)) || (separator !== ' ' && separator !== '-')) return 'wrong';
    if (code !== null && code !== line.slice(0, 3)) return 'wrong';
    code = line.slice(0, 3);
    lines++;
    if (separator === ' ') return { code, end: at + 1 };
    if (lines === LIMITS.smtp_reply_lines_max) return 'wrong';
    from = at + 1;
  }
}

/** The reader gives the same, however the bytes are cut, and holds no more than one reply. */
function readAnyhow(chance: Chance, { replies }: FuzzReport): void {
  let text = '';
  for (let n = chance.below(5); n >= 0; n--) {
    text += chance.once(6) ? `250-${'y'.repeat(chance.below(5_000))}${chance.once(2) ? '\r\n' : ''}` : reply(chance);
  }
  const bytes = latin1(text);
  const size = chance.pick([1, 2, 7, 1_000, bytes.length + 1]);
  let step: ReadStep = { kind: 'more', reader: EMPTY_READER };
  let at = 0;
  for (; at < bytes.length && step.kind === 'more'; at += size) {
    step = readReply(step.reader, bytes.subarray(at, at + size));
    if (step.kind === 'more') expectBounded(step.reader);
  }
  replies[step.kind] = (replies[step.kind] ?? 0) + 1;
  const expected = reference(text);
  if (expected === 'more' || expected === 'wrong') {
    must(step.kind === (expected === 'more' ? 'more' : 'fault'), `read as ${step.kind}, is ${expected}`, text);
    return;
  }
  must(step.kind === 'reply' && step.reply.code === expected.code, `read as ${step.kind}`, text);
  must(at - size + step.used === expected.end, 'ended elsewhere', text);
  must(!/[\x00-\x1f\x7f-\x9f]/.test(step.reply.text), 'control characters', step.reply.text);
}

function expectBounded({ partial, lines }: { partial: string; lines: readonly string[] }): void {
  must(partial.length <= LIMITS.smtp_reply_line_bytes_max + 1, 'too much is held', partial.length);
  must(lines.length < LIMITS.smtp_reply_lines_max, 'too many lines are held', lines.length);
}

const PASSWORD = 'correct horse é';
const SECRETS = ['\0desk\0correct horse é', PASSWORD].map((text) => Buffer.from(text, 'utf8').toString('base64'));
const VERB =
  /^(EHLO \S+|STARTTLS|AUTH (PLAIN( \S+)?|LOGIN)|[A-Za-z0-9+/]+=*|MAIL FROM:<\S+>( SIZE=\d+)?( RET=HDRS ENVID=[0-9a-z.]+)?|RCPT TO:<\S+>|DATA|RSET|QUIT)$/;

function planOf(chance: Chance): ExchangePlan {
  return {
    tls: chance.pick(['implicit', 'starttls']),
    ehlo_name: 'api.example.com',
    login: { username: 'desk', password: PASSWORD },
    from: 'desk@acme.example.com',
    recipients: ['a@example.net', 'b@example.net', 'c@example.net'].slice(0, 1 + chance.below(3)),
    envelope_id: chance.pick([null, '01jd9q3v7m8x2c4n6b5k1r0e9t.00ff']),
    size: 1_000,
  };
}

/** What the checks remember about one exchange. */
interface Watch {
  secure: boolean;
  /** Bytes since the last thing that was written. */
  heard: string;
  dotted: boolean;
  /** Lines of the client so far. */
  said: string[];
}

function exchangeAnyhow(chance: Chance, report: FuzzReport): void {
  const plan = planOf(chance);
  const temper = chance.pick(TEMPERS);
  const watch: Watch = { secure: false, heard: '', dotted: false, said: [] };
  let now = begin(plan);
  for (let n = 0; n < 80 && now.exchange.step !== 'over'; n++) {
    const event = nextEvent(chance, temper, now.exchange, chance.pick(watch.said) ?? '');
    for (const part of cut(chance, event)) {
      report.events++;
      const before = now.exchange;
      now = advance(before, part);
      check(watch, before, part, now);
      if (now.exchange.step === 'over') break;
    }
  }
  if (now.exchange.step !== 'over') {
    const before = now.exchange;
    now = advance(before, { kind: 'closed' });
    check(watch, before, { kind: 'closed' }, now);
  }
  const { result } = now.exchange;
  must(now.exchange.step === 'over' && result !== null, 'ended without a result', now.exchange.step);
  for (const event of [{ kind: 'connected' }, { kind: 'received', bytes: latin1('250 Ok\r\n') }] as const) {
    const after = advance(now.exchange, event);
    must(after.commands.length === 0 && after.exchange === now.exchange, 'went on behind its end', event);
  }
  checkResult(plan, watch, now.exchange);
  report.ends[result.kind] = (report.ends[result.kind] ?? 0) + 1;
  if (watch.dotted) report.dots++;
}

/** Bytes arrive in pieces, or not. */
function cut(chance: Chance, event: ExchangeEvent): ExchangeEvent[] {
  if (event.kind !== 'received' || !chance.once(3) || event.bytes.length < 2) return [event];
  const at = 1 + chance.below(event.bytes.length - 1);
  return [event.bytes.subarray(0, at), event.bytes.subarray(at)].map((bytes) => ({ kind: 'received', bytes }));
}

function check(watch: Watch, before: Exchange, event: ExchangeEvent, { exchange, commands }: Advance): void {
  expectBounded(exchange.reader);
  if (event.kind === 'received') watch.heard += Buffer.from(event.bytes).toString('latin1');
  if (event.kind === 'connected' && before.plan.tls === 'implicit') watch.secure = true;
  if (event.kind === 'secured' && before.step === 'tls') watch.secure = true;
  const found = reference(watch.heard);
  const whole = typeof found === 'object' ? found : null;
  const doing = commands.filter(({ kind }) => kind !== 'wait' && kind !== 'close');
  must(doing.length <= 1, 'several things at once', commands);
  const [next] = doing;
  if (next !== undefined && before.result === null) {
    // Nothing is said or handed over but in answer to exactly one whole reply, or to what the socket tells.
    const told = event.kind === 'connected' || event.kind === 'secured' || event.kind === 'body_written';
    must(told || whole?.end === watch.heard.length, 'a command out of step', [watch.heard, next, event.kind]);
    must(!told || watch.heard === '', 'a command although something was left unread', [watch.heard, next]);
    const wanted = answerBefore(next);
    must(told || wanted === undefined || whole?.code === wanted, 'a command behind another answer', [whole, next]);
  }
  if (before.result !== null) {
    must(exchange.result === before.result, 'another result', exchange.result);
    must(next === undefined || (next.kind === 'write' && next.line === 'QUIT'), 'more after the result', commands);
  }
  for (const command of commands) {
    if (command.kind === 'write') {
      const { line, secret } = command;
      must(VERB.test(line), 'no command', line);
      const tells = SECRETS.some((text) => line.includes(text)) || line.includes(PASSWORD);
      must(!tells || secret, 'a secret that is not marked', line);
      must(watch.secure || !secret, 'a login without TLS', line);
      must(watch.secure || /^(EHLO|STARTTLS|QUIT)/.test(line), 'said without TLS', line);
      watch.said.push(line);
    }
    if (command.kind === 'write_dot') {
      must(before.step === 'body' && exchange.accepted.length > 0, 'a dot for nobody', before.step);
      watch.dotted = true;
    }
  }
  if (exchange.result !== null && before.result === null) checkEnd(watch, before, exchange, whole?.code ?? null);
  if (next !== undefined) watch.heard = '';
}

/** The one answer behind which a command may follow, where there is only one. */
function answerBefore(command: ExchangeCommand): string | undefined {
  if (command.kind === 'start_tls') return '220';
  if (command.kind === 'write_body') return '354';
  if (command.kind !== 'write') return undefined;
  if (command.line.startsWith('MAIL')) return '235';
  return command.line.startsWith('EHLO') ? '220' : undefined;
}

/** Holds a fresh result against what was really heard. */
function checkEnd({ dotted }: Watch, before: Exchange, exchange: Exchange, code: string | null): void {
  const { result } = exchange;
  if (result === null) return;
  const about = [result, code];
  if (!dotted) {
    must(result.kind === 'retry_later' || result.kind === 'rejected', 'known before the dot', about);
    must(before.step !== 'dot', 'a dot that nobody saw', before.step);
    return;
  }
  must(before.step === 'dot', 'a late result', before.step);
  const kind =
    code === null || code === '421'
      ? 'unknown'
      : ({ 2: 'accepted', 4: 'retry_later', 5: 'rejected' }[code[0] ?? ''] ?? 'unknown');
  must(result.kind === kind, `should be ${kind}`, about);
}

function checkResult(plan: ExchangePlan, { dotted }: Watch, { result, accepted }: Exchange): void {
  if (result === null) return;
  const shown = JSON.stringify(result);
  for (const secret of [...SECRETS, PASSWORD]) must(!shown.includes(secret), 'a secret is shown', shown);
  if (result.kind === 'unknown') {
    must(dotted, 'unknown before the dot', result);
    return;
  }
  must(result.detail.length <= LIMITS.smtp_response_chars_max, 'a long detail', result.detail.length);
  const refused = result.refused.map(({ address }) => address);
  const left = [...refused, ...(result.kind === 'accepted' ? result.deferred : [])];
  must(new Set(left).size === left.length, 'left for two reasons', left);
  must(
    left.every((address) => plan.recipients.includes(address)),
    'nobody of ours',
    left,
  );
  if (result.kind === 'accepted')
    must(accepted.length + left.length === plan.recipients.length, 'lost somebody', result);
  if (result.kind !== 'retry_later') return;
  must(refused.length < plan.recipients.length, 'put off for nobody', result);
  must(
    result.refused.every(({ smtp_code: code }) => code?.startsWith('5')),
    'refused for now',
    result,
  );
}

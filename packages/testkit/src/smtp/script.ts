/**
 * What a relay says, step by step: the format `smtp-script/1`, and a few words of our own for servers that misbehave in
 * ways it has none for.
 */
export interface ScriptStep {
  /** Regex on the client's next line; `^$connect` is the connection, `BODY` everything up to and with CRLF.CRLF. */
  expect?: string;
  /** Goes on once so many bytes have come behind DATA, in the middle of the message. */
  expect_body_bytes?: number;
  /** Nothing for that long. */
  silent_s?: number;
  /** Lines, each sent with CRLF, all in one piece. */
  send?: string[];
  /** Exact bytes, as Latin-1 or, where a character needs it, as UTF-8. */
  raw?: string;
  /** Pieces in base64, each sent by itself. */
  chunks?: string[];
  /** Every byte is sent by itself. */
  bytewise?: boolean;
  /** Sent over and over, until the client has gone. */
  endless?: string;
  /** Handshake as a server, with a certificate for that name. */
  tls?: string;
  /** The handshake begins, and ends half way. */
  broken_tls?: boolean;
  /** The server closes. */
  close?: boolean;
  /** The connection breaks. */
  reset?: boolean;
  /** Behind `BODY`: whether the server takes the message. Otherwise a positive answer says so. */
  takes?: boolean;
}

export interface RelayScript {
  relay: { port: number; host: string; tls: 'implicit' | 'starttls'; from: string };
  recipients: string[];
  steps: ScriptStep[];
}

/** The server's end of a connection. */
export interface ServerLine {
  send: (bytes: Uint8Array) => Promise<void>;
  handshake: (name: string) => Promise<void>;
  breakHandshake: () => void;
  silent: (ms: number) => Promise<void>;
  close: () => void;
  reset: () => void;
}

/** Plays one script on one connection and writes down what the client did. */
export class ScriptPlayer {
  /** Lines of the client, without their ends. */
  readonly lines: string[] = [];
  /** Messages as they came, dots and final dot included. */
  readonly bodies: Buffer[] = [];
  /** Messages that this server has taken, by its own account, and for whom. */
  readonly taken: { recipients: string[]; body: Buffer }[] = [];
  /** What the client should have said, and what it did say. */
  mismatch: { expected: string; got: string } | null = null;
  readonly #steps: ScriptStep[];
  readonly #line: ServerLine;
  #recipients: string[] = [];
  #heard: Buffer = Buffer.alloc(0);
  #pieces: Uint8Array[] = [];
  #gone = false;
  #wake: () => void = () => {};

  constructor(steps: ScriptStep[], line: ServerLine) {
    this.#steps = steps;
    this.#line = line;
  }

  get gone(): boolean {
    return this.#gone;
  }

  receive(bytes: Uint8Array): void {
    this.#pieces.push(bytes);
    this.#wake();
  }

  /** Everything that was not made use of yet, in one piece. */
  #join(): Buffer {
    if (this.#pieces.length > 0) this.#heard = Buffer.concat([this.#heard, ...this.#pieces.splice(0)]);
    return this.#heard;
  }

  /** The client has ended the connection, or it broke. */
  end(): void {
    this.#gone = true;
    this.#wake();
  }

  /** From connection to the last step; then nothing more until the client goes. */
  async play(): Promise<void> {
    for (const step of this.#steps) {
      if (!(await this.#meets(step))) return;
      this.#account(step);
      if (await this.#act(step)) return;
    }
    while (!this.#gone) await this.#line.silent(60_000);
  }

  /** Whether the client did what the step waits for. */
  async #meets({ expect, expect_body_bytes: bytes }: ScriptStep): Promise<boolean> {
    if (bytes !== undefined) return this.#until(() => (this.#join().length >= bytes ? true : undefined));
    if (expect === undefined || expect === '^$connect') return !this.#gone;
    if (expect === 'BODY') return this.#until(() => this.#takeBody());
    const line = await this.#nextLine();
    if (line === undefined) return false;
    this.lines.push(line);
    if (new RegExp(expect).test(line)) return true;
    this.mismatch = { expected: expect, got: line };
    this.#line.close();
    return false;
  }

  #takeBody(): true | undefined {
    const last = this.#pieces.at(-1);
    // A message of megabytes is not searched again for every piece of it.
    if (last !== undefined && last.length > 3 && last.at(-1) !== 0x0a) return undefined;
    const heard = this.#join();
    const end = heard.subarray(0, 3).equals(FINAL) ? 3 : heard.indexOf('\r\n.\r\n') + 5;
    if (end < 5 && end !== 3) return undefined;
    this.bodies.push(this.#heard.subarray(0, end));
    this.#heard = this.#heard.subarray(end);
    return true;
  }

  async #nextLine(): Promise<string | undefined> {
    let line: string | undefined;
    await this.#until(() => {
      const end = this.#join().indexOf('\r\n');
      if (end < 0) return undefined;
      line = this.#heard.subarray(0, end).toString('latin1');
      this.#heard = this.#heard.subarray(end + 2);
      return true;
    });
    return line;
  }

  /** The server makes up its mind before it says anything. */
  #account(step: ScriptStep): void {
    const positive = `${step.raw ?? ''}${step.send?.[0] ?? ''}`.startsWith('2');
    const recipient = /^RCPT TO:<(.*)>$/.exec(this.lines.at(-1) ?? '')?.[1];
    const body = this.bodies.at(-1);
    if (step.expect === 'BODY') {
      if ((step.takes ?? positive) && body !== undefined) this.taken.push({ recipients: this.#recipients, body });
    } else if (step.expect?.startsWith('^RCPT') === true && positive && recipient !== undefined) {
      this.#recipients = [...this.#recipients, recipient];
    }
  }

  /** Waits until a look at what was heard succeeds; false when the client goes before. */
  async #until(look: () => true | undefined): Promise<boolean> {
    for (;;) {
      if (look() === true) return true;
      if (this.#gone) return false;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Does what a step says, and tells whether the connection is over. */
  async #act(step: ScriptStep): Promise<boolean> {
    if (step.silent_s !== undefined) await this.#line.silent(step.silent_s * 1_000);
    for (const piece of piecesOf(step)) {
      if (this.#gone) return true;
      await this.#line.send(piece);
    }
    while (step.endless !== undefined && !this.#gone) await this.#line.send(Buffer.from(step.endless));
    if (step.tls !== undefined) await this.#line.handshake(step.tls);
    if (step.broken_tls === true) this.#line.breakHandshake();
    if (step.reset === true) this.#line.reset();
    if (step.close === true) this.#line.close();
    return step.close === true || step.reset === true || step.broken_tls === true || this.#gone;
  }
}

const FINAL = Buffer.from('.\r\n');

function piecesOf({ send, raw, chunks, bytewise }: ScriptStep): Buffer[] {
  const text = `${raw ?? ''}${(send ?? []).map((line) => `${line}\r\n`).join('')}`;
  const whole = Buffer.from(text, 'utf8');
  const given = (chunks ?? []).map((chunk) => Buffer.from(chunk, 'base64'));
  const pieces = bytewise === true ? [...whole].map((byte) => Buffer.of(byte)) : whole.length > 0 ? [whole] : [];
  return [...pieces, ...given];
}

/** A message as it was meant: dots and final dot taken off (RFC 5321 section 4.5.2). */
export function unstuffed(body: Uint8Array): Buffer {
  const text = Buffer.from(body).toString('latin1').slice(0, -3);
  return Buffer.from(text.replace(/(^|\r\n)\./g, '$1'), 'latin1');
}

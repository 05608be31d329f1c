import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Authority } from './certificates.ts';

/**
 * A Postfix of our own on loopback: submission with STARTTLS on one port, with TLS from the first byte on another, logins by
 * SASL, and a mailbox for everyone at example.net and example.org. Its whole state is one folder.
 */

export interface PostfixOptions {
  authority: Authority;
  /** Name in its certificate. */
  host: string;
  login: { username: string; password: string };
  /** Largest message in bytes. */
  size_max?: number;
  /** Takes mail and throws it away. */
  discard?: boolean;
  /** What RCPT is answered for certain recipients. */
  answers?: Record<string, string>;
}

const REALM = 'pmail.test';
/** One folder for everybody: Postfix takes no name of a folder from the name of a recipient. */
const MAILDIR = 'everybody';
/** Owner of the mailboxes; need not exist. */
const UID = 5_000;

export class Postfix {
  /** Port for STARTTLS, and port for TLS from the first byte. */
  readonly submission: number;
  readonly submissions: number;
  readonly #folder: string;
  readonly #delivered = new Map<string, string[]>();
  readonly #read = new Set<string>();
  /** It would outlive us. */
  readonly #atExit = (): void => this.stop();

  private constructor(folder: string, submission: number, submissions: number) {
    this.#folder = folder;
    this.submission = submission;
    this.submissions = submissions;
  }

  static isThere(): boolean {
    return existsSync('/usr/sbin/postfix') && existsSync('/usr/sbin/saslpasswd2');
  }

  static async start(options: PostfixOptions): Promise<Postfix> {
    const folder = mkdtempSync(join(tmpdir(), 'pmail-postfix-'));
    const [submission, submissions] = [await freePort(), await freePort()];
    const postfix = new Postfix(folder, submission, submissions);
    postfix.#configure(options);
    postfix.#run('postfix', '-c', folder, 'start');
    process.once('exit', postfix.#atExit);
    await postfix.#answers();
    return postfix;
  }

  /** Messages that were delivered to a recipient, with what Postfix wrote on top; in no certain order. */
  mailbox(recipient: string): string[] {
    const path = join(this.#folder, 'mail', MAILDIR, 'new');
    if (!existsSync(path)) return [];
    for (const name of readdirSync(path)) {
      if (this.#read.has(name)) continue;
      this.#read.add(name);
      const message = readFileSync(join(path, name), 'latin1').replaceAll('\n', '\r\n');
      const to = /^Delivered-To: (.*)$/m.exec(message)?.[1]?.trim() ?? '';
      this.#delivered.set(to, [...(this.#delivered.get(to) ?? []), message]);
    }
    return this.#delivered.get(recipient) ?? [];
  }

  /** Waits until a recipient has so many messages. */
  async until(recipient: string, count: number): Promise<string[]> {
    const ends = Date.now() + 30_000;
    while (this.mailbox(recipient).length < count) {
      if (Date.now() > ends) throw new Error(`${recipient} has ${this.mailbox(recipient).length}\n${this.log()}`);
      await sleep(20);
    }
    return this.mailbox(recipient);
  }

  log(): string {
    const path = join(this.#folder, 'mail.log');
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  stop(): void {
    process.off('exit', this.#atExit);
    this.#run('postfix', '-c', this.#folder, 'stop');
    this.#run('rm', '-rf', this.#folder);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #configure({ authority, host, login, size_max = 10_240_000, discard = false, answers = {} }: PostfixOptions): void {
    const folder = this.#folder;
    const at = (name: string): string => join(folder, name);
    for (const name of ['spool', 'data', 'mail', 'sasl']) mkdirSync(at(name));
    // Its daemons run as users of their own and must get here.
    chmodSync(folder, 0o755);
    const { cert, key } = authority.issue({ names: [host] });
    writeFileSync(at('cert.pem'), cert);
    writeFileSync(at('key.pem'), key, { mode: 0o600 });
    writeFileSync(
      at('sasl/smtpd.conf'),
      `pwcheck_method: auxprop\nauxprop_plugin: sasldb\nmech_list: PLAIN LOGIN\nsasldb_path: ${at('sasl/sasldb2')}\n`,
    );
    const known = Object.entries(answers).map(([recipient, answer]) => `{ ${recipient} = ${answer} }`);
    const told = known.length === 0 ? '' : `check_recipient_access inline:{${known.join(', ')}}, `;
    writeFileSync(
      at('main.cf'),
      `compatibility_level = 3.6
queue_directory = ${at('spool')}
data_directory = ${at('data')}
maillog_file = ${at('mail.log')}
maillog_file_prefixes = ${folder}
myhostname = ${host}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mydestination =
alias_maps =
alias_database =
virtual_mailbox_domains = example.net, example.org
virtual_mailbox_base = ${at('mail')}
virtual_mailbox_maps = regexp:${at('mailboxes')}
virtual_uid_maps = static:${UID}
virtual_gid_maps = static:${UID}
virtual_transport = ${discard ? 'discard' : 'virtual'}
virtual_mailbox_limit = 0
mailbox_size_limit = 0
message_size_limit = ${size_max}
smtpd_sasl_auth_enable = yes
smtpd_sasl_path = smtpd
smtpd_sasl_local_domain = ${REALM}
cyrus_sasl_config_path = ${at('sasl')}
smtpd_tls_cert_file = ${at('cert.pem')}
smtpd_tls_key_file = ${at('key.pem')}
smtpd_tls_security_level = may
smtpd_tls_auth_only = yes
smtpd_recipient_restrictions = ${told}permit_sasl_authenticated, reject
smtpd_error_sleep_time = 0
smtpd_soft_error_limit = 1000
smtpd_hard_error_limit = 1000
smtpd_client_connection_count_limit = 0
`,
    );
    writeFileSync(at('mailboxes'), `/./ ${MAILDIR}/\n`);
    writeFileSync(at('master.cf'), this.#services());
    const password = spawnSync(
      '/usr/sbin/saslpasswd2',
      ['-p', '-c', '-f', at('sasl/sasldb2'), '-u', REALM, login.username],
      { input: login.password, encoding: 'utf8' },
    );
    if (password.status !== 0) throw new Error(`saslpasswd2: ${password.stderr}`);
    this.#run('chown', 'postfix', at('data'), at('sasl/sasldb2'));
    this.#run('chown', '-R', String(UID), at('mail'));
  }

  #services(): string {
    const many = ['smtp', 'virtual', 'local', 'lmtp', 'proxymap', 'showq', 'error', 'retry:error', 'discard'];
    const unlimited = ['cleanup', 'bounce', 'defer:bounce', 'trace:bounce', 'flush'];
    const alone = ['qmgr', 'tlsmgr', 'rewrite:trivial-rewrite', 'scache', 'proxywrite:proxymap', 'verify', 'anvil'];
    const line = (name: string, limit: string): string => {
      const [service = '', daemon = service] = name.split(':');
      const secret = ['cleanup', 'qmgr', 'flush', 'showq'].includes(service) ? 'n' : '-';
      // These need the rights of others: to write into mailboxes, and to see the queue.
      const unprivileged = ['virtual', 'local'].includes(service) ? 'n' : '-';
      const wakeup = { qmgr: '300', tlsmgr: '1000?', flush: '1000?' }[service] ?? '-';
      return `${service} unix ${secret} ${unprivileged} n ${wakeup} ${limit} ${daemon}`;
    };
    return [
      `127.0.0.1:${this.submission} inet n - n - - smtpd -o smtpd_tls_security_level=encrypt`,
      `127.0.0.1:${this.submissions} inet n - n - - smtpd -o smtpd_tls_wrappermode=yes`,
      'postlog unix-dgram n - n - 1 postlogd',
      'pickup unix n - n 60 1 pickup',
      ...many.map((name) => line(name, '-')),
      ...unlimited.map((name) => line(name, '0')),
      ...alone.map((name) => line(name, '1')),
      '',
    ].join('\n');
  }

  /** Runs a program that needs the rights of root. */
  #run(...command: string[]): void {
    const full = process.getuid?.() === 0 ? command : ['sudo', '-n', ...command];
    const [program = '', ...args] = full;
    const { status, stderr } = spawnSync(program, args, {
      encoding: 'utf8',
      env: { ...process.env, PATH: `/usr/sbin:${process.env['PATH']}` },
    });
    if (status !== 0) throw new Error(`${command.join(' ')}: ${stderr}\n${this.log()}`);
  }

  /** Waits until both ports are listened on; the start does not. */
  async #answers(): Promise<void> {
    for (const port of [this.submission, this.submissions]) {
      await new Promise<void>((resolve, reject) => {
        const socket = connect(port, '127.0.0.1', () => {
          socket.destroy();
          resolve();
        });
        socket.on('error', reject);
      });
    }
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

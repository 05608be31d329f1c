import { toBase64, utf8 } from '../hash.ts';
import { LIMITS } from '../limits.ts';
import { MECHANISMS, type Mechanism } from './extensions.ts';
import type { SmtpReply } from './reply.ts';

/** Logging in at a relay (RFC 4954). */

export interface RelayLogin {
  username: string;
  password: string;
}

/** The command that begins an attempt, and what each further `334` is answered with. */
export interface LoginAttempt {
  command: string;
  responses: string[];
}

/** Those of the advertised mechanisms that we know, the better one first. */
export function mechanismsToTry(advertised: readonly Mechanism[]): Mechanism[] {
  return MECHANISMS.filter((mechanism) => advertised.includes(mechanism));
}

export function loginAttempt(mechanism: Mechanism, { username, password }: RelayLogin): LoginAttempt {
  if (mechanism === 'LOGIN') {
    return { command: 'AUTH LOGIN', responses: [base64(username), base64(password)] };
  }
  const response = plainResponse({ username, password });
  const command = `AUTH PLAIN ${response}`;
  // A response that makes the command line too long waits to be asked for. One that was sent may be asked for all the
  // same, by servers that do not take it along with the command.
  const fits = command.length + 2 <= LIMITS.smtp_command_line_bytes_max;
  return { command: fits ? command : 'AUTH PLAIN', responses: [response] };
}

/** RFC 4616 section 2, without an identity to act as. */
function plainResponse({ username, password }: RelayLogin): string {
  return base64(`\0${username}\0${password}`);
}

function base64(text: string): string {
  return toBase64(utf8(text));
}

/**
 * Whether a refusal is about the mechanism and not about the credentials, so that another may do. Only a plain `535` is
 * about the credentials for certain; `5.7.4` says "security features not supported" (RFC 3463 section 3.8) with any code.
 */
export function isAboutMechanism({ code, enhanced }: Pick<SmtpReply, 'code' | 'enhanced'>): boolean {
  return code.startsWith('5') && (code !== '535' || enhanced === '5.7.4');
}

/** A reply as it may be kept and shown: a server that repeats what we sent must not spread the credentials. */
export function withoutSecrets(reply: SmtpReply, login: RelayLogin): SmtpReply {
  const secrets = [login.password, base64(login.password), plainResponse(login)];
  const said = reply.lines.join('\n');
  return secrets.some((secret) => said.includes(secret)) ? withoutText(reply) : reply;
}

/** Only the codes of a reply. */
export function withoutText({ code, enhanced }: SmtpReply): SmtpReply {
  return { code, enhanced, lines: [], text: '' };
}

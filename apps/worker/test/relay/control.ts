import type { RelayReport } from '@pmail/testkit/smtp/relay-control.ts';
import type { RelayScript, ScriptStep } from '@pmail/testkit/smtp/script.ts';
import { script } from '@pmail/transports/smtp/relay.fixture.ts';
import { inject } from 'vitest';
import type { RelayName, TestRelay } from './server.ts';

/** A relay on this machine, as a test in the runtime reaches it. */
export class RemoteRelay {
  readonly ports: TestRelay;

  constructor(name: RelayName) {
    this.ports = inject('relays')[name];
  }

  /** What it plays from now on, one script for each connection and the last of them for all others. */
  play(tls: 'implicit' | 'starttls', steps: ScriptStep[]): Promise<RelayReport> {
    const play = script(...steps);
    const scripts: RelayScript[] = [{ ...play, relay: { ...play.relay, host: 'localhost', tls } }];
    return this.#call('POST', JSON.stringify(scripts));
  }

  /** What it has heard since then. */
  heard(): Promise<RelayReport> {
    return this.#call('GET');
  }

  /** It breaks off whatever is under way. */
  hangUp(): Promise<RelayReport> {
    return this.#call('DELETE');
  }

  async #call(method: string, body?: string): Promise<RelayReport> {
    const init = body === undefined ? { method } : { method, body };
    return (await fetch(`http://127.0.0.1:${this.ports.control}/`, init)).json();
  }
}

/** A message as the relay has it, in base64 and ended by the final dot, as it was meant. */
export function meant(body: string): Uint8Array {
  const text = atob(body)
    .slice(0, -3)
    .replace(/(^|\r\n)\./g, '$1');
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

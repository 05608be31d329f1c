import { createServer, type Server } from 'node:http';
import { Authority } from './certificates.ts';
import { RelayServer } from './relay-server.ts';
import type { RelayScript } from './script.ts';

/** What a relay has heard on one connection. */
export interface Heard {
  lines: string[];
  /** Messages in base64, dots and final dot included. */
  bodies: string[];
  /** For whom it has taken a message. */
  taken: string[][];
  mismatch: { expected: string; got: string } | null;
}

export interface RelayReport {
  sessions: Heard[];
  open_most: number;
}

/**
 * A relay on a real port that is told over HTTP what to play (POST), to hang up (DELETE), and asked what it heard (GET), for
 * tests that run in another process. A second one beside it has certificates of an authority that nobody trusts.
 */
export class RelayControl {
  readonly relay: RelayServer;
  readonly stranger: RelayServer;
  readonly port: number;
  readonly #http: Server;

  private constructor(relay: RelayServer, stranger: RelayServer, http: Server, port: number) {
    this.relay = relay;
    this.stranger = stranger;
    this.#http = http;
    this.port = port;
  }

  static async start(authority: Authority): Promise<RelayControl> {
    const relay = await RelayServer.start(authority);
    const stranger = await RelayServer.start(new Authority('Stranger'));
    const http = createServer();
    await new Promise<void>((resolve) => {
      http.listen(0, '127.0.0.1', resolve);
    });
    const address = http.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const control = new RelayControl(relay, stranger, http, address.port);
    http.on('request', (request, response) => {
      let text = '';
      request.on('data', (chunk: Buffer) => {
        text += chunk.toString('utf8');
      });
      request.on('end', () => {
        if (request.method === 'POST') {
          const scripts = JSON.parse(text) as RelayScript[];
          relay.play(...scripts);
          stranger.play(...scripts);
        }
        if (request.method === 'DELETE') {
          relay.hangUp();
          stranger.hangUp();
        }
        response.end(JSON.stringify(control.report()));
      });
    });
    return control;
  }

  report(): RelayReport {
    return {
      open_most: this.relay.open_most,
      sessions: [...this.relay.players, ...this.stranger.players].map(({ lines, bodies, taken, mismatch }) => ({
        lines,
        bodies: bodies.map((body) => body.toString('base64')),
        taken: taken.map(({ recipients }) => recipients),
        mismatch,
      })),
    };
  }

  async stop(): Promise<void> {
    this.#http.closeAllConnections();
    await new Promise((resolve) => {
      this.#http.close(resolve);
    });
    await this.relay.stop();
    await this.stranger.stop();
  }
}

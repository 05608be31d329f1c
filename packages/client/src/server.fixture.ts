import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import { ERRORS, type ErrorCode, wireError } from '@pmail/core/errors.ts';

/** One request as it came over the wire. */
export interface Seen {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

type Answer = (response: ServerResponse) => void;

/** An API on the loopback interface that answers what a test has laid down for it, one answer per request. */
export class ScriptedServer {
  readonly seen: Seen[] = [];
  readonly #answers: Answer[] = [];
  readonly #server: Server;
  readonly url: string;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(): Promise<ScriptedServer> {
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const scripted = new ScriptedServer(server, address.port);
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = '', url = '', headers } = request;
        scripted.seen.push({ method, path: url, headers, body: Buffer.concat(chunks).toString('utf8') });
        const answer = scripted.#answers.shift() ?? json(500, { error: 'nothing was laid down for this request' });
        answer(response);
      });
    });
    return scripted;
  }

  will(...answers: Answer[]): void {
    this.#answers.push(...answers);
  }

  /** Answers that nobody has asked for. */
  get left(): number {
    return this.#answers.length;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers });
    response.end(JSON.stringify(body));
  };
}

/** An error of the API, as the service writes it. */
export function refusal(
  code: ErrorCode,
  headers: Record<string, string> = {},
  details?: Record<string, unknown>,
): Answer {
  return json(ERRORS[code].status, wireError(code, 'req_test', details), headers);
}

/** A page of something on the way, which is not the API. */
export function page(status: number, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(status, { 'content-type': 'text/html', ...headers });
    response.end('<h1>Not the API</h1>');
  };
}

/** A body as it is, under whatever type. */
export function file(contentType: string, bytes: Uint8Array, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(200, { 'content-type': contentType, ...headers });
    response.end(bytes);
  };
}

/** A status alone. */
export function bare(status: number, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(status, headers).end();
  };
}

/** Takes the request and says nothing, and keeps the connection. */
export const silent: Answer = () => undefined;

/** The first half of an answer, and then nothing more. */
export const stuck: Answer = (response) => {
  response.writeHead(202, { 'content-type': 'application/json', 'content-length': '100' });
  response.write('{"id":');
};

/** The connection dies after the request was read: nobody can tell what it did. */
export const hangUp: Answer = (response) => {
  response.destroy();
};

/** The connection dies in the middle of the answer. */
export const cutOff: Answer = (response) => {
  response.writeHead(202, { 'content-type': 'application/json', 'content-length': '500' });
  response.write('{"id": "msg_');
  setImmediate(() => response.destroy());
};

/** An answer that ends properly and is only a part of itself. */
export const truncated: Answer = (response) => {
  response.writeHead(202, { 'content-type': 'application/json' });
  response.end('{"id": "msg_');
};

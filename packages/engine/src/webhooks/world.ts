import type { IdFactory } from '@pmail/core/ids.ts';
import type { WebhookJob } from '@pmail/core/queue/jobs.ts';
import type { WebhookError } from '@pmail/core/webhooks/outcome.ts';
import type { EndpointRules } from '@pmail/core/webhooks/url.ts';
import type { EventIndexRow } from '../directory/events.ts';
import type { Mark } from '../marks.ts';
import type { Log, Queue } from '../ports.ts';
import type { Waits } from '../settings.ts';
import type { Db } from '../sql.ts';
import type { EndpointRow } from './endpoints.ts';

/** What one request to an endpoint came to. */
export type PostAnswer =
  | { ok: true; status: number }
  | { ok: false; error: Extract<WebhookError, 'timeout' | 'dns' | 'tls' | 'connect'> };

/** World of the webhook consumer. */
export interface WebhookWorld {
  db: Db;
  now: () => number;
  /** In [0, 1). */
  random: () => number;
  newId: IdFactory;
  mark: Mark;
  log: Log;
  count: (counter: string) => void;
  queue: Queue<WebhookJob>;
  waits: Waits;
  rules: EndpointRules;
  /** Every address of a host; throws when the resolver cannot tell. */
  resolve: (host: string) => Promise<string[]>;
  /** Bytes of an event as they were serialised; null when they are gone. May throw, and then they may still be there. */
  readEvent: (row: EventIndexRow) => Promise<string | null>;
  /** Secrets to sign with, the one in use first; empty when they cannot be opened. */
  secrets: (endpoint: EndpointRow, now: number) => Promise<string[]>;
  /** One POST: no redirects, a deadline, and little of the answer read. Never throws. */
  post: (url: string, headers: Record<string, string>, body: Uint8Array<ArrayBuffer>) => Promise<PostAnswer>;
}

import { createExecutionContext } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { bodyOf, confirmation, notification, TOPIC } from '@pmail/core/sns/message.fixture.ts';
import type { SnsMessage } from '@pmail/core/sns/message.ts';
import { snsStringToSign } from '@pmail/core/sns/signature.ts';
import { type MockInstance, vi } from 'vitest';
import type { Env } from '../../src/env.ts';
import worker from '../../src/index.ts';
import { type Certified, certify, signText } from './certificate.ts';

/** SNS as the hook sees it: it publishes certificates, signs what it sends, and answers those who follow its URLs. */

const DAY = 86_400_000;
const SNS = `https://sns.${TOPIC.region}.amazonaws.com`;

/** The deployment with its topic set; one object, because settings are remembered by it. */
export const sesEnv: Env = { ...env, PM_SES_REGION: TOPIC.region, PM_SES_SNS_TOPIC_ARN: TOPIC.arn };

export class SnsDouble {
  readonly fetched: string[] = [];
  /** What it answers at a URL; a certificate where nothing is set. */
  readonly answers = new Map<string, () => Response | Promise<Response>>();
  readonly #certificate: Certified;
  #fetch: MockInstance | undefined;
  #ids = 0;

  private constructor(certificate: Certified) {
    this.#certificate = certificate;
  }

  static async create(validity = { from: Date.now() - DAY, to: Date.now() + DAY }): Promise<SnsDouble> {
    return new SnsDouble(await certify('sns.amazonaws.com', validity));
  }

  get certificate(): string {
    return this.#certificate.pem;
  }

  /** From now on every fetch of the Worker is answered here. */
  start(): void {
    this.#fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input) => {
      const url = input instanceof Request ? input.url : String(input);
      this.fetched.push(url);
      const answer = this.answers.get(url);
      if (answer !== undefined) return answer();
      return url.endsWith('.pem') ? new Response(this.certificate) : new Response('<ok/>');
    });
  }

  stop(): void {
    this.#fetch?.mockRestore();
  }

  /** A certificate of its own for each message, unless a test names one, so that none is remembered from another test. */
  #fresh(): object {
    return {
      MessageId: `165545c9-2a5c-472c-8df2-${String(++this.#ids).padStart(12, '0')}`,
      Timestamp: new Date().toISOString(),
      SigningCertURL: `${SNS}/SimpleNotificationService-${crypto.randomUUID().replaceAll('-', '')}.pem`,
    };
  }

  async sign(message: SnsMessage): Promise<SnsMessage> {
    return { ...message, Signature: await signText(this.#certificate.key, snsStringToSign(message)) };
  }

  notification(changes: object = {}): Promise<SnsMessage> {
    return this.sign(notification({ ...this.#fresh(), ...changes }));
  }

  confirmation(changes: object = {}): Promise<SnsMessage> {
    return this.sign(confirmation({ ...this.#fresh(), ...changes }));
  }
}

/** Posts a body as SNS does. */
export async function deliver(body: string, type: string | null, to: Env = sesEnv, headers = {}): Promise<Response> {
  const request = new Request('https://api.example/hooks/ses', {
    method: 'POST',
    headers: {
      'content-type': 'text/plain; charset=UTF-8',
      ...(type === null ? {} : { 'x-amz-sns-message-type': type }),
      ...headers,
    },
    body,
  });
  return worker.fetch(request as never, to, createExecutionContext());
}

export function deliverMessage(message: SnsMessage, to?: Env): Promise<Response> {
  return deliver(bodyOf(message), message.Type, to);
}

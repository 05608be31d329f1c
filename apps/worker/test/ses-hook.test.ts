import { env } from 'cloudflare:workers';
import { routeSpec } from '@pmail/contracts/routes.ts';
import { wireError } from '@pmail/contracts/schemas/error.ts';
import { bodyOf, TOPIC } from '@pmail/core/sns/message.fixture.ts';
import type { SnsMessage } from '@pmail/core/sns/message.ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Env } from '../src/env.ts';
import { deliver as deliverTo, SnsDouble, sesEnv } from './sns/world.ts';

/** Messages of SNS at the hook: proven ones are taken, everything else is refused without any effect. */

let sns: SnsDouble;
let queued: ReturnType<typeof vi.spyOn>;
let logged: string[];
let refusals: number;

const HOUR = 3_600_000;

beforeEach(async () => {
  sns = await SnsDouble.create();
  sns.start();
  queued = vi.spyOn(env.Q_OUTBOUND, 'send');
  logged = [];
  refusals = 0;
  for (const level of ['log', 'warn', 'error'] as const) {
    vi.spyOn(console, level).mockImplementation((line: string) => void logged.push(line));
  }
});
afterEach(() => {
  vi.useRealTimers();
  sns.stop();
  vi.restoreAllMocks();
});

function aMinuteLater(): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_001 });
}

/** The settings of the hook, telling everything. */
const loud = { ...sesEnv, PM_LOG_LEVEL: 'info' };
const deliver = (body: string, type: string | null, to: Env = loud, headers?: Record<string, string>) =>
  deliverTo(body, type, to, headers);
const deliverMessage = (message: SnsMessage, to: Env = loud) => deliver(bodyOf(message), message.Type, to);
const isSubscribe = (url: string): boolean => url.includes('ConfirmSubscription');

/** Each refusal of a test is counted once, whatever it is for. */
async function refused(answer: Promise<Response>): Promise<void> {
  const response = await answer;
  refusals++;
  const body = await response.text();
  expect(response.status, body).toBe(403);
  expect(wireError.parse(JSON.parse(body)).error.code).toBe('invalid_signature');
  expect(logged.filter((line) => line.includes('ses_sns_rejected_total'))).toHaveLength(refusals);
  expect(queued).not.toHaveBeenCalled();
  expect(sns.fetched.filter(isSubscribe)).toEqual([]);
}

async function taken(answer: Promise<Response>): Promise<void> {
  const response = await answer;
  expect([response.status, await response.text()]).toEqual([200, '']);
}

test('the hook needs no key, and has a refusal of its own', () => {
  const { method, path, access, errors } = routeSpec('hooks.ses');
  expect([method, path, access]).toEqual(['POST', '/hooks/ses', { kind: 'public' }]);
  expect(errors).toEqual(['invalid_signature', 'rate_limited']);
});

describe('a confirmation', () => {
  test('that is signed is followed once, and answered', async () => {
    const message = await sns.confirmation();
    await taken(deliverMessage(message));
    expect(sns.fetched).toEqual([message.SigningCertURL, 'SubscribeURL' in message ? message.SubscribeURL : '']);
  });

  test('that is played back is refused, and not followed again', async () => {
    const message = await sns.confirmation();
    await taken(deliverMessage(message));
    sns.fetched.length = 0;
    await refused(deliverMessage(message, loud));
    expect(logged.join('\n')).toContain('confirmed before');
  });

  test('that could not be followed is asked for again', async () => {
    const message = await sns.confirmation();
    const url = 'SubscribeURL' in message ? message.SubscribeURL : '';
    sns.answers.set(url, () => new Response('', { status: 503 }));
    expect((await deliverMessage(message)).status).toBe(500);
    sns.answers.set(url, () => Promise.reject(new TypeError('Network connection lost.')));
    expect((await deliverMessage(message)).status).toBeGreaterThanOrEqual(500);
    // A redirect leads away from SNS.
    sns.answers.set(url, () => new Response('', { status: 302, headers: { location: 'https://evil.example/' } }));
    expect((await deliverMessage(message)).status).toBe(500);
    sns.answers.delete(url);
    await taken(deliverMessage(message));
    expect(sns.fetched.some((at) => at.includes('evil'))).toBe(false);
  });

  test('of which two come at once is followed once', async () => {
    const message = await sns.confirmation();
    const answers = await Promise.all([deliverMessage(message), deliverMessage(message), deliverMessage(message)]);
    const codes = answers.map(({ status }) => status).toSorted((a, b) => a - b);
    expect(codes[0]).toBe(200);
    expect(codes.slice(1).every((status) => status === 403 || status === 500)).toBe(true);
    expect(sns.fetched.filter(isSubscribe)).toHaveLength(1);
  });
});

test('the end of a subscription is answered, and told to the operator', async () => {
  await taken(deliverMessage(await sns.confirmation({ Type: 'UnsubscribeConfirmation' }), loud));
  expect(sns.fetched.filter(isSubscribe)).toEqual([]);
  expect(logged.join('\n')).toContain('ses_unsubscribed');
});

describe('a notification', () => {
  test('that is signed is taken; what cannot be read of it is counted', async () => {
    await taken(deliverMessage(await sns.notification({ Message: 'not JSON' }), loud));
    expect(logged.join('\n')).toContain('delivery_unparsable_total');
    expect(queued).not.toHaveBeenCalled();
  });

  test('may have a subject and line ends', async () => {
    await taken(deliverMessage(await sns.notification({ Message: 'not\nJSON', Subject: 'Amazon SES Email Event' })));
  });

  test('at the edge of its hour is taken', async () => {
    const Timestamp = new Date(Date.now() - HOUR + 5_000).toISOString();
    await taken(deliverMessage(await sns.notification({ Message: 'old', Timestamp })));
  });
});

describe('V8 refused, counted and without any effect is', () => {
  test.each(['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'])('a changed %s', async (field) => {
    const good = await sns.notification({ Subject: 'x' });
    const value = field === 'Timestamp' ? new Date(Date.now() - 1_000).toISOString() : 'another';
    const bad: SnsMessage = { ...good, [field]: value };
    await refused(deliver(bodyOf(bad), field === 'Type' ? null : 'Notification', loud));
  });

  test.each(['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'])(
    'a confirmation with a changed %s',
    async (field) => {
      const good = await sns.confirmation();
      const value: Record<string, string> = {
        Timestamp: new Date(Date.now() - 1_000).toISOString(),
        SubscribeURL: 'https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=another',
        Type: 'UnsubscribeConfirmation',
      };
      const bad: SnsMessage = { ...good, [field]: value[field] ?? 'another' };
      await refused(deliverMessage(bad));
    },
  );

  test('a subject that was put in or taken out', async () => {
    const without = await sns.notification();
    await refused(deliver(JSON.stringify({ ...without, Subject: '' }), 'Notification'));
    const { Subject: _gone, ...rest } = (await sns.notification({ Subject: 'x' })) as SnsMessage & { Subject: string };
    await refused(deliver(JSON.stringify(rest), 'Notification'));
  });

  test.each([
    ['signature version 1', { SignatureVersion: '1' }],
    ['another topic', { TopicArn: 'arn:aws:sns:eu-west-1:999900001111:pylota-mail' }],
    ['the topic of inbound mail', { TopicArn: `${TOPIC.arn}-inbound` }],
  ])('one that is signed, but of %s', async (_what, changes) => {
    await refused(deliverMessage(await sns.notification(changes)));
    await refused(deliverMessage(await sns.confirmation(changes)));
    expect(sns.fetched).toEqual([]);
  });

  test.each([-1, 1])('one that is signed, but more than an hour away: %i', async (direction) => {
    const Timestamp = new Date(Date.now() + direction * (HOUR + 60_000)).toISOString();
    await refused(deliverMessage(await sns.notification({ Timestamp })));
    await refused(deliverMessage(await sns.confirmation({ Timestamp })));
    expect(sns.fetched).toEqual([]);
  });

  test.each([
    'https://sns.eu-west-1.amazonaws.com.evil.example/cert.pem',
    'https://sns.eu-west-1.amazonaws.com@evil.example/cert.pem',
    'https://user:pass@sns.eu-west-1.amazonaws.com/cert.pem',
    'https://sns.eu-west-1.amazonaws.com:8443/cert.pem',
    'http://sns.eu-west-1.amazonaws.com/cert.pem',
    'https://sns.us-east-1.amazonaws.com/cert.pem',
    'https://evil.example/cert.pem',
    'https://sns.eu-west-1.amazonaws.com/?Action=GetEndpointAttributes&x=.pem',
    'https://sns.eu-west-1.amazonaws.com/cert.pem',
    'https://sns.eu-west-1.amazonaws.com/a/SimpleNotificationService-0a1b2c.pem',
    'https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-.pem',
    'https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0A1B.pem',
    'https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0a1b%2f..%2fx.pem',
    'https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0a1b.pem.pem',
  ])('one signed by a certificate at %s', async (SigningCertURL) => {
    await refused(deliverMessage(await sns.notification({ SigningCertURL })));
    expect(sns.fetched).toEqual([]);
  });

  test.each([
    'https://sns.eu-west-1.amazonaws.com.evil.example/?Action=ConfirmSubscription',
    'https://sns.eu-west-1.amazonaws.com@evil.example/?Action=ConfirmSubscription',
    'https://sns.eu-west-1.amazonaws.com:444/?Action=ConfirmSubscription',
    'http://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription',
    'https://evil.example/?Action=ConfirmSubscription',
  ])('a confirmation that leads to %s', async (SubscribeURL) => {
    await refused(deliverMessage(await sns.confirmation({ SubscribeURL })));
  });

  test('what somebody else has signed', async () => {
    const other = await SnsDouble.create();
    await refused(deliverMessage(await other.notification()));
    await refused(deliverMessage(await other.confirmation()));
  });

  test.each([
    ['nothing', ''],
    ['no base64', '!!!!'],
    ['something short', 'AAAA'],
  ])('a signature that is %s', async (_what, Signature) => {
    await refused(deliverMessage({ ...(await sns.notification()), Signature }));
  });

  test('a body that is too large, or no text', async () => {
    const big = await sns.notification({ Message: 'x'.repeat(600_000) });
    await refused(deliverMessage(big, loud));
    await refused(deliver('', null));
    await refused(deliver('<html></html>', 'Notification'));
    await refused(deliver('[]', 'Notification'));
  });

  test('anything, and its address counted, so that who keeps on is told to wait', async () => {
    const headers = { 'cf-connecting-ip': '192.0.2.9' };
    const counted = vi.spyOn(env.RL_API, 'limit');
    await taken(deliver(bodyOf(await sns.notification({ Message: 'x' })), 'Notification', sesEnv, headers));
    expect(counted).not.toHaveBeenCalled();
    await refused(deliver('nothing', null, loud, headers));
    expect(counted.mock.calls).toEqual([[{ key: expect.stringMatching(/^anon:[0-9a-f]{16}$/) as string }]]);
    counted.mockResolvedValue({ success: false });
    const response = await deliver('nothing', null, sesEnv, headers);
    expect([response.status, response.headers.has('retry-after')]).toEqual([429, true]);
  });

  test('a message whose header says another type', async () => {
    await refused(deliver(bodyOf(await sns.confirmation()), 'Notification'));
  });

  test('case 36: raw delivery', async () => {
    const event = {
      eventType: 'Bounce',
      bounce: { bounceType: 'Permanent', bouncedRecipients: [{ emailAddress: 'jo@example.net' }] },
      mail: { messageId: '0102019ab3c4d5e6', source: 'desk@acme.example.com', destination: ['jo@example.net'] },
    };
    const headers = { 'x-amz-sns-rawdelivery': 'true', 'x-amz-sns-topic-arn': TOPIC.arn };
    await refused(deliver(JSON.stringify(event), 'Notification', loud, headers));
    const lines = logged.join('\n');
    expect(lines).toContain('raw delivery / no signature');
    expect(lines).not.toContain('jo@example.net');
  });

  test('everything where no topic is set', async () => {
    const message = await sns.notification();
    await refused(deliverMessage(message, { ...loud, PM_SES_SNS_TOPIC_ARN: '' }));
    await refused(deliverMessage(message, { ...loud, PM_SES_REGION: '' }));
    expect(sns.fetched).toEqual([]);
  });
});

describe('the certificate', () => {
  const SigningCertURL = `https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-${'0'.repeat(32)}.pem`;

  test('is remembered for a day', async () => {
    for (let i = 0; i < 3; i++)
      await taken(deliverMessage(await sns.notification({ SigningCertURL, Message: `note ${i}` })));
    expect(sns.fetched).toEqual([SigningCertURL]);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 24 * HOUR });
    const fresh = await SnsDouble.create();
    sns.answers.set(SigningCertURL, () => new Response(fresh.certificate));
    await taken(deliverMessage(await fresh.notification({ SigningCertURL, Message: 'tomorrow' })));
    vi.useRealTimers();
    expect(sns.fetched).toEqual([SigningCertURL, SigningCertURL]);
  });

  test.each([
    ['is not there', () => new Response('', { status: 404 })],
    ['is somewhere else', () => new Response('', { status: 302, headers: { location: 'https://evil.example/' } })],
    ['is none', () => new Response('hello')],
    ['is far too large', () => new Response('x'.repeat(100_000))],
  ])('that %s proves nothing', async (_what, answer) => {
    const message = await sns.notification();
    sns.answers.set(message.SigningCertURL, answer);
    await refused(deliverMessage(message));
    // That it led nowhere is remembered for a minute, and nothing else of it.
    sns.answers.delete(message.SigningCertURL);
    sns.fetched.length = 0;
    const again = await sns.notification({ SigningCertURL: message.SigningCertURL, Message: 'x' });
    await refused(deliverMessage(again));
    expect(sns.fetched).toEqual([]);
    aMinuteLater();
    await taken(deliverMessage(again));
    expect(sns.fetched).toEqual([message.SigningCertURL]);
  });

  test.each([
    ['over', -2 * HOUR, -HOUR],
    ['not yet good', HOUR, 2 * HOUR],
  ])('that is %s proves nothing', async (_what, from, to) => {
    const other = await SnsDouble.create({ from: Date.now() + from, to: Date.now() + to });
    const message = await other.notification();
    sns.answers.set(message.SigningCertURL, () => new Response(other.certificate));
    await refused(deliverMessage(message));
  });

  test.each([
    ['answers with a fault', () => new Response('', { status: 503 })],
    ['cannot be reached', () => Promise.reject(new TypeError('Network connection lost.'))],
  ])('whose server %s says nothing against the message: SNS sends it again', async (_what, answer) => {
    const message = await sns.notification({ Message: 'again' });
    sns.answers.set(message.SigningCertURL, answer);
    const response = await deliverMessage(message);
    expect(response.status).toBeGreaterThanOrEqual(500);
    sns.answers.delete(message.SigningCertURL);
    // Nor does it while nobody is asked again.
    expect((await deliverMessage(message)).status).toBeGreaterThanOrEqual(500);
    expect(sns.fetched).toEqual([message.SigningCertURL]);
    aMinuteLater();
    await taken(deliverMessage(message));
  });
});

describe('a fault of ours', () => {
  test('is told to SNS, which sends the message again', async () => {
    const message = await sns.confirmation();
    const down = vi.spyOn(env.DB, 'batch').mockRejectedValueOnce(new Error('D1_ERROR: Network connection lost.'));
    expect((await deliverMessage(message)).status).toBe(503);
    down.mockRestore();
    await taken(deliverMessage(message));
  });
});

import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { sha256Hex, utf8 } from '../hash.ts';
import { signWebhook, webhookSecret } from './signature.ts';

const NOW = Date.UTC(2026, 10, 30, 9, 0, 0, 412);
const SECRET = webhookSecret(new Uint8Array(32).map((_, index) => index * 7));
const OTHER = webhookSecret(new Uint8Array(32).fill(9));
const ID = 'evt_01JD0000000000000000000001';

describe('a signature', () => {
  // Bytes that a parse and a new serialisation would change.
  const BODY =
    '{"id":"evt_01JD0000000000000000000001","type":"message.received","data":{"subject":"Résumé   😀 </script>","n":1.0,"text":"a\\u0000b\\/c"}}';

  test('is over the bytes as they are, and the public library takes it', async () => {
    const headers = await signWebhook([SECRET], ID, Date.now(), utf8(BODY));
    expect(() => new Webhook(SECRET).verify(BODY, { ...headers })).not.toThrow();
    expect(() => new Webhook(OTHER).verify(BODY, { ...headers })).toThrow();
    for (const changed of [BODY.replace('1.0', '1'), `${BODY} `, BODY.replace('\\/', '/')]) {
      expect(() => new Webhook(SECRET).verify(changed, { ...headers })).toThrow();
    }
  });

  test('equals that of the public library', async () => {
    const { 'webhook-timestamp': timestamp, 'webhook-signature': value } = await signWebhook(
      [SECRET],
      ID,
      NOW,
      utf8(BODY),
    );
    expect(timestamp).toBe(String(Date.UTC(2026, 10, 30, 9) / 1_000));
    expect(value).toBe(new Webhook(SECRET).sign(ID, new Date(NOW), BODY));
  });

  test('of a known secret and body is the known one', async () => {
    // The example of the specification's reference libraries.
    const headers = await signWebhook(
      ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
      'msg_p5jXN8AQM9LWM0D4loKWxJek',
      1_614_265_330_000,
      utf8('{"test": 2432232314}'),
    );
    expect(headers['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  });

  test('during a rotation has both, the new one first', async () => {
    const headers = await signWebhook([OTHER, SECRET], ID, Date.now(), utf8(BODY));
    const [first, second, ...more] = headers['webhook-signature'].split(' ');
    expect(more).toEqual([]);
    expect([first, second].every((value) => value?.startsWith('v1,'))).toBe(true);
    for (const secret of [OTHER, SECRET]) expect(() => new Webhook(secret).verify(BODY, { ...headers })).not.toThrow();
    const alone = await signWebhook([OTHER], ID, Number(headers['webhook-timestamp']) * 1_000, utf8(BODY));
    expect(alone['webhook-signature']).toBe(first);
  });

  test('of two secrets over bytes that a parse would change is the known one', async () => {
    const body = utf8(BODY.replace('Résumé   ', 'Résumé \u2028 '));
    const fresh = 'whsec_ZWZnaGlqa2xtbm9wcXJzdHV2d3h5ent8fX5/gIGCg4Q=';
    const old = 'whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=';
    expect(await sha256Hex(body)).toBe('f952731a3e4e5e7ead4b5104d7f95033e89268f11b0f67307bb5419e3f051cba');
    const first = 'v1,SYYRr38X+ZGbGBFrm8xDezF2gffsSN+oYB6HW2V1Q0I=';
    const both = await signWebhook([fresh, old], ID, 1_796_029_200_000, body);
    expect(both['webhook-signature']).toBe(`${first} v1,byHs8Q2MUXznWB0NeONTFVJtc3VVpFLyC3H0PfWtQ0Y=`);
    expect((await signWebhook([fresh], ID, 1_796_029_200_000, body))['webhook-signature']).toBe(first);
  });

  test('does not verify after its time', async () => {
    const headers = await signWebhook([SECRET], ID, Date.now() - 6 * 60_000, utf8(BODY));
    expect(() => new Webhook(SECRET).verify(BODY, { ...headers })).toThrow();
  });
});

test('a secret shows its kind and holds 32 bytes', () => {
  expect(SECRET).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(() => webhookSecret(new Uint8Array(16))).toThrow();
});

test('what is no secret signs nothing', async () => {
  await expect(signWebhook(['pmk_live_x'], ID, NOW, utf8('{}'))).rejects.toThrow();
});

import { env } from 'cloudflare:workers';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { arrive, type Lab, makeLab } from './mail.ts';
import { call, deploy } from './support.ts';

/** Headers of messages and of whole threads, read from the bytes that are stored. */

let lab: Lab;

beforeEach(async () => {
  lab = await makeLab(await deploy());
});
afterEach(() => {
  vi.restoreAllMocks();
});

const mail = (n: number, header = ''): string =>
  `From: a@example.org\nMessage-ID: <${n}@example.org>\n${n === 0 ? '' : 'In-Reply-To: <0@example.org>\n'}` +
  `Subject: Long talk\nX-Turn: ${n}\n${header}\n${'Hello. \n'.repeat(18_000)}`;

test('those of every message in a thread are shown, and not one body is read for them', async () => {
  // The header of the last goes on behind what is read at first.
  const long = Array.from({ length: 80 }, (_, n) => `X-Long-${n}: ${'x'.repeat(1_900)}\n`).join('');
  for (const [n, header] of ['', '', '', '', '', '', '', `${long}X-End: here\n`].entries()) {
    await arrive(lab.ann, mail(n, header));
  }
  const params = { identity_id: lab.ann };
  const [thread] = (await call(lab.key, 'threads.list', { params })).data;
  const read = vi.spyOn(env.BLOBS, 'get');
  const query = { include: 'headers' };
  const { messages } = await call(lab.key, 'threads.get', {
    params: { ...params, thread_id: thread?.id ?? '' },
    query,
  });
  const turns = messages.map(({ headers }) => headers?.find(({ name }) => name.toLowerCase() === 'x-turn')?.value);
  expect(turns).toEqual(['0', '1', '2', '3', '4', '5', '6', '7']);
  expect(messages.at(-1)?.headers?.at(-1)).toMatchObject({ value: 'here' });
  const whole = read.mock.calls.filter(([, options]) => options === undefined);
  expect([read.mock.calls.length, whole.length]).toEqual([9, 1]);

  for (const message of messages) {
    const one = await call(lab.key, 'messages.get', { params: { ...params, message_id: message.id }, query });
    expect(one.headers).toEqual(message.headers);
  }
}, 60_000);

test('of a message whose bytes are gone there are none', async () => {
  const id = await arrive(lab.ann, mail(0));
  const { objects } = await env.BLOBS.list();
  await env.BLOBS.delete(objects.map(({ key }) => key));
  const message = { identity_id: lab.ann, message_id: id };
  const { thread_id } = await call(lab.key, 'messages.get', { params: message });
  const params = { identity_id: lab.ann, thread_id };
  const { messages } = await call(lab.key, 'threads.get', { params, query: { include: 'headers' } });
  expect(messages).toMatchObject([{ id, headers: null }]);
});

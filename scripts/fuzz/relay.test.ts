import { fuzzRelay } from '@pmail/testkit/smtp/fuzz.ts';
import { expect, it } from 'vitest';
import { relayFuzzer } from './relay.ts';

it('one exchange that works too long is found among many', async () => {
  let worked = 0;
  const slow = relayFuzzer((inputs, seed, from) => {
    worked += from === 700 ? 5_000 : 1;
    return fuzzRelay(inputs, seed, from);
  });
  const work = { clock: () => worked, most_ms: 3_000 };
  const report = await slow.run({ inputs: 2_000, seed: 5, work });
  expect(report).toMatchObject({ inputs: 700, slowest_ms: 5_000, failure: { input: 'number 700', seed: 5 } });
});

it('one at a time they are the same inputs as all together', async () => {
  const { dots, replies } = fuzzRelay(2_000, 5);
  const { taken, inputs } = await relayFuzzer().run({ inputs: 2_000, seed: 5, work: null });
  expect(inputs).toBe(2_000);
  expect(taken).toBe(dots + (replies['reply'] ?? 0));
});

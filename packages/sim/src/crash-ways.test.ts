import { MARKS } from '@pmail/engine/marks.ts';
import { expect, test } from 'vitest';
import { rareCrashFamilies } from './crash-ways.ts';
import { installSyncCrypto } from './sync-crypto.ts';
import { everyPlace } from './variants.ts';

installSyncCrypto();

test('somebody dies at each mark that a plain send never reaches, and each way holds every invariant', async () => {
  const died = new Set<string>();
  for (const family of rareCrashFamilies()) {
    for await (const { name, report } of everyPlace(family)) {
      expect(report.violations, `${name}\n${report.history.join('\n')}`).toEqual([]);
      for (const mark of report.crashes.keys()) died.add(mark);
    }
  }
  const rare = MARKS.filter((mark) => /^(cancel|resolve)\.|^claim\.expired|hold_expired|event\.paused/.test(mark));
  expect([...died]).toEqual(expect.arrayContaining([...rare]));
});

import type { PmailClient } from '@pmail/client/client.ts';
import { persist } from '../load/persist.ts';
import type { Participant, Place } from '../load/place.ts';

/** Caps that no number of rounds comes near; they are the subject of other tests. */
const CAP = 10_000_000;

export async function liftCaps(platform: PmailClient, { tenant }: Place): Promise<void> {
  await persist(() =>
    platform.call('tenants.policy.update', {
      params: { tenant_id: tenant },
      body: { policy: { identity_daily_send_cap: CAP, tenant_daily_send_cap: CAP } },
    }),
  );
}

/** The same tenant with identities of this round alone, so that no round's bounces or copies count in another. */
export async function freshPlace(platform: PmailClient, place: Place, run: string): Promise<Place> {
  const make = async (name: string): Promise<Participant> => {
    // Its client id makes a repeat give the same identity.
    const { body } = await persist(() =>
      platform.call('identities.create', {
        params: { tenant_id: place.tenant },
        body: {
          username: `${name}-${run}`,
          display_name: name,
          client_id: `${name}-${run}`,
          owner: { name: 'Owner of the test', email: 'owner@example.com' },
        },
      }),
    );
    const { id, primary_address: address } = body as { id: string; primary_address: string };
    return { id, address };
  };
  const [sender, desk, garage] = await Promise.all(['sender', 'desk', 'garage'].map(make));
  if (sender === undefined || desk === undefined || garage === undefined) throw new Error('no identities');
  return { ...place, sender, desk, garage };
}

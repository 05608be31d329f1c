import { utf8 } from '@pmail/core/hash.ts';
import type { DomainId } from '@pmail/core/ids.ts';
import { type SealPlace, seal, unseal } from '@pmail/core/seal.ts';
import { parseRelaySettings, type RelaySettings } from '@pmail/core/smtp/settings.ts';

/** Settings of a domain's relay, its credentials among them, sealed at rest. */

function place(id: DomainId): SealPlace {
  return { table: 'domains', column: 'smtp_sealed', row: id };
}

export function sealRelay(masterKey: Uint8Array<ArrayBuffer>, id: DomainId, settings: RelaySettings): Promise<string> {
  const nonce = crypto.getRandomValues(new Uint8Array(12));
  return seal(masterKey, place(id), utf8(JSON.stringify(settings)), nonce);
}

/** @throws when the value was sealed with another key or for another domain, or holds no settings */
export async function openRelay(
  masterKey: Uint8Array<ArrayBuffer>,
  id: DomainId,
  sealed: string,
): Promise<RelaySettings> {
  const bytes = await unseal([masterKey], place(id), sealed);
  const settings = bytes === undefined ? undefined : parseRelaySettings(new TextDecoder().decode(bytes));
  if (settings === undefined) throw new Error('the settings of a relay cannot be opened');
  return settings;
}

import { LIMITS } from '@pmail/core/limits.ts';
import { envelopeId } from '@pmail/core/smtp/envelope-id.ts';
import { ehloName } from '@pmail/core/smtp/settings.ts';
import type { Owner } from '@pmail/core/storage/keys.ts';
import type { MailTransport } from '@pmail/core/transport/types.ts';
import { Places, type RelayPlaces } from '@pmail/engine/consumers/relay-places.ts';
import type { ConsumerWorld } from '@pmail/engine/consumers/world.ts';
import { readRelay } from '@pmail/engine/directory/relay.ts';
import { systemClock } from '@pmail/transports/smtp/socket.ts';
import { smtpTransport } from '@pmail/transports/smtp/transport.ts';
import { config, type Env } from '../env.ts';
import { openRelay } from '../ports/relay-settings.ts';
import { openRelaySocket } from '../ports/relay-socket.ts';
import { resolveHost } from '../ports/resolver.ts';

/** The relay of whoever sends. Its credentials are opened for one exchange and known nowhere else. */
export function relayTransport(
  env: Env,
  world: Pick<ConsumerWorld, 'db' | 'hmac' | 'requestDomainCheck'>,
  owner: Owner,
): MailTransport {
  const { api_host, platform_domain, master_key, resolvers, relay_loopback: allow_loopback } = config(env);
  return smtpTransport({
    rules: { api_host, platform_domain, allow_loopback },
    ehlo_name: ehloName(api_host),
    relayOf: async (domain) => {
      const row = await readRelay(world.db, owner.tenant_id, domain);
      return row === undefined ? null : openRelay(master_key, row.domain_id, row.smtp_sealed);
    },
    envelopeIdOf: (id) => envelopeId(world.hmac, id),
    resolve: (host) => resolveHost(resolvers, host),
    requestDomainCheck: (domain, issue) => world.requestDomainCheck(domain, issue),
    open: openRelaySocket,
    clock: systemClock,
  });
}

/** Places for the jobs of one batch. A job that takes one lets the next begin, as it may wait or hang for minutes. */
export function relayPlaces(): (letNext: () => void) => RelayPlaces {
  const places = new Places(LIMITS.smtp_connections_max);
  return (letNext) => ({
    take: () => {
      letNext();
      return places.take();
    },
  });
}

import type { MailTransport, Provider } from '@pmail/core/transport/types.ts';
import { suppressionLookup } from '@pmail/transports/cloudflare/suppressions.ts';
import { cloudflareTransport } from '@pmail/transports/cloudflare/transport.ts';
import { sesTransport } from '@pmail/transports/ses/transport.ts';
import { config, type Env } from '../env.ts';

const CLOUDFLARE_API = 'https://api.cloudflare.com';

/**
 * The real providers of this deployment, each by its settings. Whether a message may be given to one of them is decided
 * where its transport is chosen; no message of a test tenant ever is.
 */
export function providers(env: Env): { [P in Provider]?: MailTransport } {
  const { cloudflare_account: account, message_ids, ses } = config(env);
  const transports: { [P in Provider]?: MailTransport } = {};
  const { EMAIL: binding } = env;
  if (binding !== undefined) {
    const ports = { base: CLOUDFLARE_API, fetch: (url: string, init: RequestInit) => fetch(url, init) };
    transports.cloudflare = cloudflareTransport(
      {
        send: (mail) => binding.send(mail as Parameters<SendEmail['send']>[0]),
        suppressions: account === null ? null : suppressionLookup(ports, account),
      },
      message_ids.strategy,
    );
  }
  if (ses !== null) {
    transports.ses = sesTransport({ now: () => Date.now(), fetch: (url, init) => fetch(url, init) }, ses);
  }
  return transports;
}

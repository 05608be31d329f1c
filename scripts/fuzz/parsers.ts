import type { Fuzzer } from '@pmail/testkit/fuzz/fuzzer.ts';
import { addresses, usernames } from './addresses.ts';
import { headers, html, ids, lines, mime, subjects } from './mail.ts';
import { certificateUrls, notifications } from './notifications.ts';
import { relayExchanges } from './relay.ts';
import { bounceMails, cloudflareEvents, sesEvents } from './reports.ts';
import { htmlRuns, mailRuns } from './runs.ts';
import { names, signedLinks, threadTokens } from './tokens.ts';
import { ipAddresses, webhookUrls } from './urls.ts';

/** Every parser that meets bytes of strangers and needs no runtime; those of the Worker stand beside its tests. */
export const FUZZERS: readonly Fuzzer[] = [
  addresses,
  usernames,
  headers,
  mime,
  lines,
  mailRuns,
  html,
  htmlRuns,
  ids,
  subjects,
  bounceMails,
  cloudflareEvents,
  sesEvents,
  threadTokens,
  signedLinks,
  names,
  webhookUrls,
  ipAddresses,
  notifications,
  certificateUrls,
  relayExchanges,
];

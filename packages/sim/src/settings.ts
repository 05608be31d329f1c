import { utf8 } from '@pmail/core/hash.ts';
import type { ThreadKey } from '@pmail/core/threading/token.ts';
import type { Deployment as DeploymentFacts } from '@pmail/engine/directory/facts.ts';

/** What the simulated deployment is set to. */

export const HASH_KEY = utf8('0123456789abcdef0123456789abcdef');
/** Signs the thread tokens of the whole deployment. */
export const THREAD_KEY: ThreadKey = { kid: '0', secret: utf8('fedcba9876543210fedcba9876543210') };
export const FACTS: DeploymentFacts = { default_policy: {}, ses_configured: true, smtp_enabled: true };

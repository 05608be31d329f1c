import type { RouteHandler } from '@pmail/contracts/routes.ts';
import { sha256Hex } from '@pmail/core/hash.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { ok, refuse } from '@pmail/core/result.ts';
import { handOnReports } from '@pmail/engine/consumers/reports.ts';
import { beginRequest, completeRequest, forgetRequest } from '@pmail/engine/directory/idempotency.ts';
import { consumerWorld } from '../../consumers/world.ts';
import type { RequestContext } from '../context.ts';
import { certificateKey } from '../hooks/certificates.ts';
import { receiveSes, type SesHookPorts } from '../hooks/ses.ts';
import { countFailure } from '../rate.ts';

type Handler = RouteHandler<'hooks.ses', RequestContext>;

export function sesPorts(context: RequestContext): SesHookPorts {
  const { config, log, now } = context;
  return {
    topic: config.ses_topic,
    now: () => now,
    log,
    count: (counter) => log('info', 'count', { counter }),
    keyAt: (url) => certificateKey(url, now),
    once: (id, confirm) => once(context, id, confirm),
    follow,
    deliver: (reports) => handOnReports(consumerWorld(context.env, context.requestId, null), reports),
  };
}

/**
 * Follows a confirmation the first time it comes. The directory remembers it for as long as its time lets it pass, so that
 * one which is played back is known wherever it comes in.
 */
async function once({ db, now }: RequestContext, snsMessageId: string, confirm: () => Promise<void>): Promise<boolean> {
  const key = { scope: 'platform', key_id: 'hooks.ses', idem_key: await sha256Hex(snsMessageId) };
  const mark = { method: 'POST', path: '/hooks/ses', fingerprint: 'SubscriptionConfirmation' };
  const begin = await beginRequest(db, key, mark, now, 2 * LIMITS.sns_age_ms_max);
  if (begin.kind === 'in_progress') throw new Error('the confirmation is being followed');
  if (begin.kind !== 'begun') return false;
  try {
    await confirm();
  } catch (error) {
    await forgetRequest(db, key, begin.began);
    throw error;
  }
  await completeRequest(db, key, begin.began, { status: 200, body: 'null' });
  return true;
}

/** A checked URL of SNS. Its answer says nothing that we do not know, and a redirect would lead away from there. */
async function follow(url: string): Promise<void> {
  const signal = AbortSignal.timeout(LIMITS.provider_question_ms_max);
  const response = await fetch(url, { redirect: 'manual', signal });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`the confirmation was answered ${response.status}`);
}

export const hookHandlers: { 'hooks.ses': Handler } = {
  'hooks.ses': async (context) => {
    const header = context.headers.get('x-amz-sns-message-type');
    const body = await context.readText(LIMITS.sns_body_bytes_max);
    const answer = await receiveSes(sesPorts(context), header, body);
    if (answer === 'taken') return ok({ status: 200 as const, body: null });
    // The path is known to all and no key guards it, so whoever fails here is counted like one without a key.
    const counted = await countFailure(context.env, context.config, context.headers, context.now);
    return counted.ok ? refuse('invalid_signature') : counted;
  },
};

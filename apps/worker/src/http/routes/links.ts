import type { RouteHandler } from '@pmail/contracts/routes.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { type LinkTarget, linkKid, readLink } from '@pmail/core/links.ts';
import { ok, refuse } from '@pmail/core/result.ts';
import {
  firstRow,
  type IdentityRef,
  identityStatement,
  type TenantRef,
  tenantStatement,
} from '@pmail/engine/directory/owners.ts';
import { signingKeyStatement } from '@pmail/engine/directory/signing-keys.ts';
import { type SigningKey, signingKeys } from '../../ports/keyring.ts';
import { mailboxCall, mailboxOf, type RequestContext } from '../context.ts';
import { within } from '../deadline.ts';
import { downloadHeaders } from '../download.ts';
import { object } from '../object-call.ts';
import { countFailure } from '../rate.ts';
import { ringOf } from '../ring.ts';

type Handler = RouteHandler<'links.get', RequestContext>;

interface Link {
  key: SigningKey;
  target: LinkTarget;
}

/** What the token proves: which file it is for, and the key that says so. */
async function verify(context: RequestContext, token: string): Promise<Link | undefined> {
  const kid = linkKid(token);
  if (kid === undefined) return undefined;
  const key = (await signingKeys(ringOf(context), 'link', kid)).find((entry) => entry.kid === kid);
  const target = key === undefined ? undefined : await readLink(key, token, context.now);
  return key === undefined || target === undefined ? undefined : { key, target };
}

/**
 * The mailbox that has the file, when it may still be read. Asked of the directory each time: a link is all that its
 * holder needs, so it ends with its key and its identity and not when the isolate forgets them.
 */
async function ownerOf({ db, now }: RequestContext, { key, target }: Link): Promise<IdentityRef | undefined> {
  const statements = [
    signingKeyStatement('link', key),
    identityStatement(target.identity_id),
    tenantStatement(target.tenant_id),
  ];
  const [[keyRow] = [], identities, tenants] = await within(
    LIMITS.directory_deadline_ms,
    'directory',
    db.batch(statements),
  );
  const until = keyRow?.['verify_until'];
  if (until === undefined || (until !== null && Number(until) <= now)) return undefined;
  const [identity, tenant] = [firstRow<IdentityRef>(identities), firstRow<TenantRef>(tenants)];
  if (identity?.tenant_id !== target.tenant_id || tenant === undefined) return undefined;
  const leaving = ['deleting', 'deleted'].includes(identity.status) || ['erasing', 'erased'].includes(tenant.status);
  return leaving ? undefined : identity;
}

/** The file that a link leads to, or undefined for every reason that there can be. */
async function follow(context: RequestContext, token: string): Promise<Awaited<ReturnType<Handler>> | undefined> {
  const link = await verify(context, token);
  const identity = link === undefined ? undefined : await ownerOf(context, link);
  if (link === undefined || identity === undefined) return undefined;
  const { message_id, attachment_id } = link.target;
  const found = await object(
    mailboxOf(context, identity).attachmentLocation(mailboxCall(context, identity), message_id, attachment_id, false),
  );
  if (found === undefined || found.risk !== null) return undefined;
  const stored = await context.env.BLOBS.get(found.r2_key);
  if (stored === null) return undefined;
  return ok({
    status: 200,
    body: stored.body,
    headers: downloadHeaders({
      filename: found.filename ?? 'attachment',
      contentType: found.content_type,
      size: stored.size,
    }),
  });
}

export const linkHandlers: { 'links.get': Handler } = {
  'links.get': async (context, { params }) => {
    const answer = await follow(context, params.token);
    if (answer !== undefined) return answer;
    // A token is tried like a key, so failures count against whoever tries.
    const counted = await countFailure(context.env, context.config, context.headers, context.now);
    return counted.ok ? refuse('attachment_not_found') : counted;
  },
};

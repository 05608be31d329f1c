import { grants } from '@pmail/contracts/permissions.ts';
import { PATH_PARAMS, type PathParam } from '@pmail/contracts/routes/params.ts';
import { SEND_ROUTES } from '@pmail/contracts/routes/sends.ts';
import {
  bodyIsOptional,
  type Handlers,
  ROUTE_IDS,
  type RouteHandler,
  type RouteId,
  type RouteSpec,
  routeSpec,
} from '@pmail/contracts/routes.ts';
import { parseBody, parseQuery } from '@pmail/contracts/validate.ts';
import type { RequestId } from '@pmail/core/ids.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { IDEMPOTENCY_KEY } from '@pmail/core/message/request.ts';
import { ok, type Refusal, type Result, refuse } from '@pmail/core/result.ts';
import { type AuthRow, keyStatement, touchKey } from '@pmail/engine/directory/keys.ts';
import {
  firstRow,
  type IdentityRef,
  identityStatement,
  type TenantRef,
  tenantStatement,
} from '@pmail/engine/directory/owners.ts';
import type { SqlValue, Statement } from '@pmail/engine/sql.ts';
import { type Context, Hono } from 'hono';
import { type Config, type Env, readConfig } from '../env.ts';
import { createLog, errorPlace } from '../log.ts';
import { newId } from '../ports/random.ts';
import { d1 } from '../ports/sql.ts';
import { type AnswerContext, answer, errorAnswer } from './answer.ts';
import { authenticate, type Credentials, readCredentials } from './auth.ts';
import { readBody, readNoBody, readText } from './body.ts';
import { type AuthKey, type RequestContext, reachesIdentity, reachesTenant } from './context.ts';
import { within } from './deadline.ts';
import { refusalOf } from './fault.ts';
import { underKey } from './idempotency.ts';
import { type Counted, countFailure, countRequest, tightest } from './rate.ts';
import { type SendFacts, sendFacts } from './send-facts.ts';

type App = { Bindings: Env };
type Rows = Record<string, SqlValue>[][];

/**
 * The router refuses by default: only routes of the contract exist, and each says who may call it. A request is taken
 * apart in a fixed order, and the first thing wrong gives the answer: key, rate, permission, level, owner,
 * Idempotency-Key, query and body, then the handler.
 */
export function createApp(handlers: Handlers<RequestContext>): Hono<App> {
  const app = new Hono<App>();
  for (const id of ROUTE_IDS) {
    const spec = routeSpec(id);
    const path = spec.path.replace(/\{(\w+)\}/g, ':$1');
    app.on(spec.method, path, (c) => run(c, id, spec, handlers[id] as unknown as AnyHandler));
  }
  app.notFound((c) => unknownRoute(c));
  return app;
}

type AnyHandler = RouteHandler<RouteId, RequestContext>;

async function run(c: Context<App>, id: RouteId, spec: RouteSpec, handler: AnyHandler): Promise<Response> {
  const requestId = newId('req', Date.now());
  const frame: AnswerContext = { requestId, now: Date.now(), rateLimit: null };
  const log = createLog(c.env.PM_LOG_LEVEL, { request_id: requestId, route: id });
  try {
    const result = await serve(c, id, spec, handler, frame, requestId, log);
    log('info', 'request', { status: result.status, ms: Date.now() - frame.now });
    return result;
  } catch (error) {
    const refusal = refusalOf(error);
    log('error', 'request_failed', { code: refusal.code, error: errorPlace(error) });
    return errorAnswer(frame, refusal);
  }
}

async function serve(
  c: Context<App>,
  id: RouteId,
  spec: RouteSpec,
  handler: AnyHandler,
  frame: AnswerContext,
  requestId: RequestId,
  log: RequestContext['log'],
): Promise<Response> {
  const settings = readConfig(c.env);
  if (!settings.ok) return errorAnswer(frame, refuse('unavailable', { config_invalid: settings.invalid }));
  const { config } = settings;
  const params = c.req.param() as Record<string, string>;
  const base = {
    env: c.env,
    config,
    db: d1(c.env.DB),
    requestId,
    now: frame.now,
    log,
    headers: c.req.raw.headers,
    readText: (max: number) => readText(c.req.raw, max),
    path: c.req.path,
    search: new URL(c.req.url).searchParams,
    background: (work: Promise<unknown>) => {
      c.executionCtx.waitUntil(
        work.catch((error: unknown) => log('warn', 'background_failed', { error: errorPlace(error) })),
      );
    },
  };
  const credentials = spec.access.kind === 'key' ? readCredentials(base.headers) : null;
  if (credentials === undefined) {
    const { rateLimit, result } = await unauthenticated(base, refuse('unauthenticated'));
    frame.rateLimit = rateLimit;
    return errorAnswer(frame, result);
  }
  // A large body is not read on the word of a key that may be made up; that takes a read of the directory of its own.
  const proof = credentials !== null && mayBeLarge(c.req.raw) ? await proveAlone(base, credentials, spec) : null;
  if (proof !== null) {
    frame.rateLimit = proof.rateLimit;
    if (!proof.result.ok) return errorAnswer(frame, proof.result);
  }
  // The body is read now, so that one read of the directory can serve key, owner and recipients, but what is wrong
  // with it is told only when its turn comes.
  const rawBody = await readBodyOf(spec, c.req.raw);
  const body = spec.body === null || !rawBody.ok ? rawBody : parseBody(spec.body, rawBody.value);
  const query = parseQuery(spec.query, base.search);

  let context = base as unknown as RequestContext;
  if (credentials !== null) {
    const admitted = await admit(base, credentials, proof, id, spec, params, body);
    frame.rateLimit = admitted.rateLimit;
    if (!admitted.result.ok) return errorAnswer(frame, admitted.result);
    context = admitted.result.value;
  }
  const keyed = checkIdempotencyKey(spec, c.req.raw.headers, query);
  if (keyed !== null) return errorAnswer(frame, keyed);
  if (!query.ok) return errorAnswer(frame, query);
  if (!body.ok) return errorAnswer(frame, body);
  context.rawBody = rawBody.ok ? rawBody.value : null;
  const input = { params, query: query.value, body: body.value } as never;
  const result = await underKey(context, id, spec, () => handler(context, input));
  if (!result.ok) return errorAnswer(frame, result);
  const { status, body: content, headers } = result.value;
  const contentType = spec.success.find((entry) => entry.status === status)?.contentType ?? null;
  return answer(frame, status, content, contentType, headers);
}

type Base = Omit<RequestContext, 'key' | 'identity' | 'tenant' | 'facts' | 'rawBody'>;

interface Admission<R = Result<RequestContext>> {
  rateLimit: number | null;
  result: R;
}

/** The answer to who could not prove to be anybody, counted for the address that asked. */
async function unauthenticated({ env, config, headers, now }: Base, refusal: Refusal): Promise<Admission<Refusal>> {
  const counted = await countFailure(env, config, headers, now);
  return { rateLimit: tightest([{ bucket: 'key' }]), result: counted.ok ? refusal : counted };
}

/** Bodies up to this size are read whoever sends them. */
const UNPROVEN_BODY_BYTES_MAX = 64 * 1024;

/** Whether the body is larger than that, or says nothing of its length. */
function mayBeLarge({ body, headers }: Request): boolean {
  const length = headers.get('content-length');
  return body !== null && !(length !== null && Number(length) <= UNPROVEN_BODY_BYTES_MAX);
}

/** Key, rate, permission and level. */
async function prove(
  base: Base,
  credentials: Credentials,
  spec: RouteSpec,
  row: AuthRow | undefined,
): Promise<Admission<Result<AuthKey>>> {
  const { env, config, db, now } = base;
  const authenticated = await authenticate(config.key_pepper, credentials, row, now);
  if (!authenticated.ok) return unauthenticated(base, authenticated);
  const key = authenticated.value;
  const lastUsed = row?.last_used_at ?? null;
  if (lastUsed === null || lastUsed < now - 60_000) base.background(touchKey(db, key.id, now));
  const buckets = keyBuckets(key);
  const counted = await countRequest(env, buckets, now);
  const refusal = counted.ok ? checkAccess(spec, key) : counted;
  return { rateLimit: tightest(buckets), result: refusal ?? authenticated };
}

async function proveAlone(base: Base, credentials: Credentials, spec: RouteSpec): Promise<Admission<Result<AuthKey>>> {
  const read = base.db.batch([keyStatement(credentials.lookup)]);
  const [rows] = await within(LIMITS.directory_deadline_ms, 'directory', read);
  return prove(base, credentials, spec, firstRow<AuthRow>(rows));
}

/**
 * Key, rate, permission, level and owner, from one read of the directory.
 *
 * @param proof of the key, where it has been looked at already
 */
async function admit(
  base: Base,
  credentials: Credentials,
  proof: Admission<Result<AuthKey>> | null,
  id: RouteId,
  spec: RouteSpec,
  params: Record<string, string>,
  body: Result<unknown>,
): Promise<Admission> {
  const { env, config, db, now } = base;
  const owner = await ownerPlan(config, id, params, body, now);
  const statements = [keyStatement(credentials.lookup), ...owner.statements];
  const [keyRows = [], ...ownerRows] = await within(LIMITS.directory_deadline_ms, 'directory', db.batch(statements));
  const { rateLimit, result: proven } = proof ?? (await prove(base, credentials, spec, firstRow<AuthRow>(keyRows)));
  if (!proven.ok) return { rateLimit, result: proven };
  const key = proven.value;
  const owned = owner.read(ownerRows, key);
  if (!owned.ok) return { rateLimit, result: owned };
  // Only for those who reach the identity: nobody else can use its rate up, or tell by it that there is one.
  const ofSender: Counted[] = id in SEND_ROUTES ? [{ bucket: 'send', key: params['identity_id'] ?? '' }] : [];
  const sending = await countRequest(env, ofSender, now);
  const result = sending.ok ? ok({ ...base, key, ...owned.value } as RequestContext) : sending;
  return { rateLimit: tightest([...keyBuckets(key), ...ofSender]), result };
}

/** What comes without a key, as the notifications of a provider do, is read by its handler. */
async function readBodyOf(spec: RouteSpec, request: Request): Promise<Result<unknown>> {
  if (spec.body !== null) return readBody(request, bodyIsOptional(spec));
  return spec.access.kind === 'key' ? readNoBody(request) : ok(null);
}

function checkAccess({ access }: RouteSpec, key: AuthKey): Refusal | null {
  if (access.kind === 'public') return null;
  if (!access.waivedFor?.includes(key.level)) {
    const lacking = access.permissions.find((permission) => !grants(key.permissions, permission));
    if (lacking !== undefined) return refuse('permission_denied', { required: lacking });
  }
  return access.levels === undefined || access.levels.includes(key.level) ? null : refuse('scope_denied');
}

function keyBuckets(key: AuthKey): Counted[] {
  const own: Counted = { bucket: 'key', key: key.id };
  return key.tenant_id === null ? [own] : [own, { bucket: 'tenant', key: key.tenant_id }];
}

interface OwnerPlan {
  statements: Statement[];
  read: (rows: Rows, key: AuthKey) => Result<Partial<RequestContext>>;
}

/** What the path names, and how to tell whether the key reaches it. A malformed id is not even looked up. */
async function ownerPlan(
  config: Config,
  id: RouteId,
  params: Record<string, string>,
  body: Result<unknown>,
  now: number,
): Promise<OwnerPlan> {
  for (const [name, value] of Object.entries(params)) {
    // The owner of a malformed child is still looked at first.
    if (name !== 'identity_id' && name !== 'tenant_id') continue;
    const { isWellFormed, missing } = PATH_PARAMS[name];
    if (!isWellFormed(value)) return { statements: [], read: () => refuse(missing) };
  }
  const { identity_id: identityId, tenant_id: tenantId } = params;
  if (identityId !== undefined) {
    const facts: SendFacts | null = id in SEND_ROUTES ? await sendFacts(config, identityId, body, now) : null;
    return {
      // The facts begin with the identity's own row.
      statements: facts?.statements ?? [identityStatement(identityId)],
      read: (rows, key) => {
        const identity = firstRow<IdentityRef>(rows[0]);
        if (identity === undefined || !reachesIdentity(key, identity)) return refuse('identity_not_found');
        const malformed = malformedChild(params);
        if (malformed !== null) return malformed;
        return ok({ identity, ...(facts === null ? {} : { facts: facts.parse(rows) }) } as Partial<RequestContext>);
      },
    };
  }
  if (tenantId !== undefined) {
    return {
      statements: [tenantStatement(tenantId)],
      read: ([tenantRows], key) => {
        const tenant = firstRow<TenantRef>(tenantRows);
        if (tenant === undefined || !reachesTenant(key, tenant.id)) return refuse('tenant_not_found');
        return malformedChild(params) ?? ok({ tenant });
      },
    };
  }
  return { statements: [], read: () => malformedChild(params) ?? ok({}) };
}

function malformedChild(params: Record<string, string>): Refusal | null {
  for (const [name, value] of Object.entries(params)) {
    const { isWellFormed, missing } = PATH_PARAMS[name as PathParam];
    if (!isWellFormed(value)) return refuse(missing);
  }
  return null;
}

function checkIdempotencyKey(spec: RouteSpec, headers: Headers, query: Result<unknown>): Refusal | null {
  if (spec.idempotency === 'none') return null;
  const value = headers.get('idempotency-key');
  const dryRun = query.ok && (query.value as { dry_run?: boolean }).dry_run === true;
  if (value === null) return spec.idempotency === 'required' && !dryRun ? refuse('idempotency_key_required') : null;
  return IDEMPOTENCY_KEY.test(value) ? null : refuse('invalid_idempotency_key');
}

/** A path of the contract under another method says which it takes; anything else is no route at all. */
function unknownRoute(c: Context<App>): Response {
  const frame: AnswerContext = { requestId: newId('req', Date.now()), now: Date.now(), rateLimit: null };
  const segments = c.req.path.split('/');
  const methods = ROUTE_IDS.map(routeSpec)
    .filter(({ path }) => {
      const pattern = path.split('/');
      return (
        pattern.length === segments.length &&
        pattern.every((part, index) => (part.startsWith('{') ? segments[index] !== '' : part === segments[index]))
      );
    })
    .map(({ method }) => method);
  if (methods.length === 0) return errorAnswer(frame, refuse('route_not_found'));
  return errorAnswer(frame, refuse('method_not_allowed'), { allow: [...new Set(methods)].join(', ') });
}

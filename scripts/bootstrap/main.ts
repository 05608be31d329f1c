import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parseDomain } from '@pmail/core/address/address.ts';
import { readOptions } from '@pmail/testkit/options.ts';
import { ROOT } from '@pmail/testkit/runtime/build.ts';
import { anotherPlatformKey, domainReady, firstRows } from './rows.ts';
import { sqlText } from './sql-text.ts';

/**
 * `npm run bootstrap`: the secrets, the schema and the first rows of a deployment, and one platform key, which is shown
 * once. Everything goes through wrangler; without `--local` it works on the account that wrangler is logged in to.
 */

const USAGE = `npm run bootstrap -- --platform-domain D [--local] [--persist-to FOLDER]
                     [--owner-email E] [--system-name N] [--system-local-part P]
    makes the secrets, the schema and the first rows of a deployment, and shows its platform key, once.
    Works on the account that wrangler is logged in to, or with --local on the state that wrangler dev has here
    (--persist-to: in another folder).
    D is the domain of the platform addresses; the service writes as N <P@D> (Pylota Mail <no-reply@D>)
    and E is the owner of that identity (postmaster@D)
npm run bootstrap -- --platform-domain D --domain-ready
    says that D can send; until then every send of a live tenant is answered with domain_not_ready. May also be said at once
npm run bootstrap -- --platform-domain D --rotate-pepper [--local] [--persist-to FOLDER]
    makes every key invalid, and a new platform key`;

const DATABASE = 'pylota-mail';
const KEY_HOURS = 24;
const SECRETS = ['PM_MASTER_KEY', 'PM_KEY_PEPPER', 'PM_HASH_KEY'] as const;

function read(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      'platform-domain': { type: 'string' },
      'owner-email': { type: 'string' },
      'system-name': { type: 'string', default: 'Pylota Mail' },
      'system-local-part': { type: 'string', default: 'no-reply' },
      'domain-ready': { type: 'boolean', default: false },
      'rotate-pepper': { type: 'boolean', default: false },
      local: { type: 'boolean', default: false },
      'persist-to': { type: 'string' },
    },
  });
  const domain = parseDomain(values['platform-domain'] ?? '');
  if (domain === undefined) throw new Error('--platform-domain must name the domain of the platform addresses');
  return { ...values, domain };
}

const options = readOptions(USAGE, read);

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}

function wrangler(args: string[], input?: string): string {
  const { status, stdout, stderr } = spawnSync('wrangler', args, { cwd: ROOT, input: input ?? '', encoding: 'utf8' });
  if (status !== 0) fail(`wrangler ${args.slice(0, 3).join(' ')} failed:\n${stderr}${stdout}`);
  return stdout;
}

const where = [
  options.local ? '--local' : '--remote',
  ...(options['persist-to'] === undefined ? [] : ['--persist-to', options['persist-to']]),
];

function query<T>(sql: string): T[] {
  const text = wrangler(['d1', 'execute', DATABASE, ...where, '--json', '--command', sql]);
  const [result] = JSON.parse(text.slice(text.indexOf('['))) as { results: T[] }[];
  return result?.results ?? [];
}

/** How many keys there are; also proves that the schema stands. */
function countKeys(): number {
  return query<{ n: number }>('SELECT COUNT(*) AS n FROM api_keys')[0]?.n ?? 0;
}

function sayDomainReady(domain: string): void {
  const [row] = query<{ name: string; state: string }>("SELECT name, state FROM domains WHERE kind = 'platform'");
  if (row?.name !== domain) fail(`the platform domain of this deployment is ${row?.name}, not ${domain}`);
  if (row.state !== 'pending' && row.state !== 'verifying') fail(`${domain} is ${row.state} already`);
  execute(domainReady(domain, Date.now()).map(sqlText));
  console.log(`${domain} was ${row.state}, and is healthy now`);
}

function execute(statements: string[]): void {
  const folder = mkdtempSync(join(tmpdir(), 'pmail-'));
  try {
    const file = join(folder, 'rows.sql');
    writeFileSync(file, statements.join('\n'), { mode: 0o600 });
    wrangler(['d1', 'execute', DATABASE, ...where, '--yes', '--file', file]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Puts secrets where the runtime reads them; a local run keeps them in `.dev.vars`, which git ignores. */
function storeSecrets(secrets: Record<string, string>): void {
  if (!options.local) {
    for (const [name, value] of Object.entries(secrets)) wrangler(['secret', 'put', name], value);
    return;
  }
  const path = join(ROOT, '.dev.vars');
  const kept = (existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []).filter(
    (line) => line !== '' && !Object.hasOwn(secrets, line.split('=')[0] ?? ''),
  );
  writeFileSync(
    path,
    `${[...kept, ...Object.entries(secrets).map(([name, value]) => `${name}=${value}`)].join('\n')}\n`,
    {
      mode: 0o600,
    },
  );
}

function main(): void {
  const { domain } = options;
  wrangler(['d1', 'migrations', 'apply', DATABASE, ...where]);
  const keys = countKeys();
  if (keys > 0 && options['domain-ready'] && !options['rotate-pepper']) {
    sayDomainReady(domain);
    return;
  }
  if (keys > 0 && !options['rotate-pepper']) {
    fail(`this deployment has ${keys} keys already; --rotate-pepper makes all of them invalid and a new one`);
  }
  const now = Date.now();
  const expiresAt = options.local ? null : now + KEY_HOURS * 3_600_000;
  const pepper = randomBytes(32);
  const rows =
    keys > 0
      ? anotherPlatformKey(pepper, expiresAt, now)
      : firstRows({
          platform_domain: domain,
          system_from: { name: options['system-name'], local_part: options['system-local-part'] },
          owner_email: options['owner-email'] ?? `postmaster@${domain}`,
          pepper,
          expires_at: expiresAt,
          domain_state: options.local || options['domain-ready'] ? 'healthy' : 'pending',
          now,
        });
  const secrets: Record<string, string> = { PM_KEY_PEPPER: pepper.toString('base64') };
  if (keys === 0) for (const name of SECRETS) secrets[name] ??= randomBytes(32).toString('base64');
  if (options.local)
    Object.assign(secrets, {
      PM_ENV: 'local',
      PM_JURISDICTION: 'default',
      PM_PLATFORM_DOMAIN: domain,
      PM_API_HOST: 'localhost:8787',
    });
  storeSecrets(secrets);
  execute(rows.statements.map(sqlText));
  console.log(
    `platform key, shown only now${expiresAt === null ? '' : `, valid for ${KEY_HOURS} hours`}:\n\n  ${rows.key}\n`,
  );
  console.log(options.local ? 'start it with: npx wrangler dev' : 'deploy with: npx wrangler deploy');
  if (!options.local && keys === 0 && !options['domain-ready'])
    console.log(`once ${domain} can send, say so: npm run bootstrap -- --platform-domain ${domain} --domain-ready`);
}

main();

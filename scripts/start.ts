import { join } from 'node:path';
import { ROOT } from '@pmail/testkit/runtime/build.ts';
import { Runtime } from '@pmail/testkit/runtime/runtime.ts';
import { prepare } from './load/place.ts';

/** The local service, with a test tenant, two identities, a key and something to try. */

const PORT = 8787;

async function main(): Promise<void> {
  const port = Number(process.env['PORT'] ?? PORT);
  // What runs here may tell a program that runs here.
  const vars = { PM_WEBHOOK_LOOPBACK: 'on' };
  const runtime = await Runtime.start({ state: join(ROOT, '.state', 'local'), port, vars });
  const { key, sender, desk } = await prepare(runtime);
  console.log(`
Pylota Mail runs on ${runtime.url} with its state in .state/local. Stop it with Ctrl-C.

  tenant key    ${key}
  platform key  ${runtime.secrets.platform_key}
  identities    ${sender.address} (${sender.id})
                ${desk.address} (${desk.id})

Send a message to the other identity, then read it there:

  curl ${runtime.url}/v1/identities/${sender.id}/messages \\
    -H 'Authorization: Bearer ${key}' \\
    -H 'Idempotency-Key: my-first-message' -H 'Content-Type: application/json' \\
    -d @examples/to-another-identity.json

  curl '${runtime.url}/v1/identities/${desk.id}/messages?limit=1' -H 'Authorization: Bearer ${key}'
`);
  await new Promise<void>((resolve) => {
    process.once('SIGINT', resolve);
    process.once('SIGTERM', resolve);
  });
  await runtime.stop();
}

await main();

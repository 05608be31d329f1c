import { connect } from 'node:net';
import { join } from 'node:path';
import { ROOT } from '@pmail/testkit/runtime/build.ts';
import { StateInUse } from '@pmail/testkit/runtime/lock.ts';
import { Runtime } from '@pmail/testkit/runtime/runtime.ts';
import { prepare } from './load/place.ts';

/** The local service, with a test tenant, two identities, a key and something to try. */

const PORT = 8787;

async function main(): Promise<void> {
  const port = Number(process.env['PORT'] ?? PORT);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return fail('PORT must be a number from 1 to 65535');
  // What runs here may tell a program that runs here.
  const vars = { PM_WEBHOOK_LOOPBACK: 'on' };
  let runtime: Runtime;
  try {
    runtime = await Runtime.start({ state: join(ROOT, '.state', 'local'), port, vars });
  } catch (error) {
    if (error instanceof StateInUse) return fail(error.message);
    if (await isTaken(port)) return fail(`port ${port} is taken; choose another one: PORT=8788 npm start`);
    throw error;
  }
  const { key, tenant, sender, desk } = await prepare(runtime);
  console.log(`
Pylota Mail runs on ${runtime.url} with its state in .state/local. Stop it with Ctrl-C.

  tenant key    ${key}
  platform key  ${runtime.secrets.platform_key}
  identities    ${sender.address} (${sender.id})
                ${desk.address} (${desk.id})

For the requests of docs/tour.md, paste this first:

  export API=${runtime.url} PLATFORM_KEY=${runtime.secrets.platform_key} KEY=${key} TENANT=${tenant}
  export SENDER=${sender.id} DESK=${desk.id} DESK_ADDRESS=${desk.address}

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

function fail(message: string): void {
  console.error(message);
  process.exitCode = 1;
}

/** Whether somebody listens there already. */
function isTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

await main();

import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Authority } from '@pmail/testkit/smtp/certificates.ts';

/**
 * The authority behind the certificates of the tests' relay. The runtime reads whom it trusts beside the usual authorities
 * when it is loaded, so this stands before that.
 */

const SYSTEM = '/etc/ssl/certs/ca-certificates.crt';

export function trustTestAuthority(): void {
  const authority = new Authority();
  const folder = mkdtempSync(join(tmpdir(), 'pmail-authority-'));
  const system = existsSync(SYSTEM) ? readFileSync(SYSTEM, 'utf8') : '';
  writeFileSync(join(folder, 'trusted.pem'), `${system}\n${authority.cert}`);
  process.env['NODE_EXTRA_CA_CERTS'] = join(folder, 'trusted.pem');
  process.env['PM_TEST_AUTHORITY'] = authority.keep();
}

export function testAuthority(): Authority {
  return new Authority(undefined, process.env['PM_TEST_AUTHORITY']);
}

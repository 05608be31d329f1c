import { RelayControl } from '@pmail/testkit/smtp/relay-control.ts';
import type { TestProject } from 'vitest/node';
import { testAuthority } from './authority.ts';

/** Ports of a relay: itself, one that nobody trusts, and where both are told what to do. */
export interface TestRelay {
  port: number;
  stranger: number;
  control: number;
}

/** One for each test file, as files run at the same time. */
export type RelayName = 'sockets' | 'domain';

declare module 'vitest' {
  interface ProvidedContext {
    relays: Record<RelayName, TestRelay>;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const authority = testAuthority();
  const [sockets, domain] = await Promise.all([RelayControl.start(authority), RelayControl.start(authority)]);
  const ports = ({ relay, stranger, port }: RelayControl): TestRelay => ({
    port: relay.port,
    stranger: stranger.port,
    control: port,
  });
  project.provide('relays', { sockets: ports(sockets), domain: ports(domain) });
  return async () => {
    await Promise.all([sockets.stop(), domain.stop()]);
  };
}

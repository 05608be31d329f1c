import { type Evidence, mailbox, rowsOf, type Violation } from './evidence.ts';

/** I4: no counter of a day ever stood above its cap, and nothing was accepted beyond the allowance. */
export function limitsKept(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  const wrong = (text: string): void => {
    violations.push({ invariant: 'I4', text });
  };
  for (const { tenant_id: id, policy, granted } of evidence.deployment.tenants) {
    const quota = evidence.deployment.quotas.get(id);
    if (quota === undefined) continue;
    const caps = { identity: policy.identity_daily_send_cap, tenant: policy.tenant_daily_send_cap };
    const counters = quota.sql.all<{ metric: string; most: number }>('SELECT metric, most FROM sim_most');
    for (const { metric, most } of counters) {
      const cap = metric === 'sends' ? caps.tenant : caps.identity;
      if (typeof cap === 'number' && most > cap) wrong(`${metric} of ${id} was ${most}, the cap ${cap}`);
    }
    if (granted === undefined) continue;
    const used = quota.sql.first<{ used: number }>("SELECT used FROM allowances WHERE feature = 'sends'")?.used ?? 0;
    // Who was uncertain gave the hold back, and counts all the same when it turns out that they were sent to.
    const late = evidence.identities
      .filter(({ tenant_id }) => tenant_id === id)
      .map((identity) => wereUncertain(evidence, identity))
      .reduce((a, b) => a + b, 0);
    if (used > granted + late) wrong(`${id} used ${used} of ${granted}, and ${late} were uncertain`);
  }
  return violations;
}

/** Recipients who were uncertain for a time, and of whom a provider or a person says that they were sent to. */
function wereUncertain(evidence: Evidence, identity: Evidence['identities'][number]): number {
  const { provider, watcher } = evidence.deployment;
  const { forgotten, restored } = mailbox(evidence, identity);
  const late = new Set<string>();
  for (const { messages, deliveries, history } of [rowsOf(evidence, identity), ...forgotten]) {
    const ids = new Map(messages.map(({ rowid, id }) => [rowid, id]));
    const doubtful = history.flatMap(({ rowid, address, new: status }) =>
      address !== null && status === 'uncertain' ? [{ rowid, address }] : [],
    );
    // Who is shown again after the storage was put back is uncertain from the beginning.
    const again = restored ? deliveries.map(({ message_rowid, address }) => ({ rowid: message_rowid, address })) : [];
    for (const { rowid, address } of [...doubtful, ...again]) {
      const id = ids.get(rowid);
      if (id === undefined) continue;
      const taken = provider.log.some((call) => call.message_id === id && call.accepted.includes(address));
      if (taken || watcher.said.get(id)?.has('sent') === true) late.add(`${id} ${address}`);
    }
  }
  return late.size;
}

import { deliveriesOf, type Evidence, mailbox, rowsOf, type Violation } from './evidence.ts';

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
    const counters = quota.sql.all<{ metric: string; value: number }>(
      "SELECT metric, value FROM counters WHERE metric = 'sends' OR metric LIKE 'sends:%'",
    );
    for (const { metric, value } of counters) {
      const cap = metric === 'sends' ? caps.tenant : caps.identity;
      if (typeof cap === 'number' && value > cap) wrong(`${metric} of ${id} is ${value}, the cap ${cap}`);
    }
    if (granted === undefined) continue;
    const used = quota.sql.first<{ used: number }>("SELECT used FROM allowances WHERE feature = 'sends'")?.used ?? 0;
    // What was uncertain gave its hold back, and counts all the same when it turns out to have been sent.
    const late = evidence.identities
      .filter(({ tenant_id }) => tenant_id === id)
      .map((identity) => wereUncertain(evidence, identity))
      .reduce((a, b) => a + b, 0);
    if (used > granted + late) wrong(`${id} used ${used} of ${granted}, and ${late} were uncertain`);
  }
  return violations;
}

function wereUncertain(evidence: Evidence, identity: Evidence['identities'][number]): number {
  const { forgotten } = mailbox(evidence, identity);
  const all = [rowsOf(evidence, identity), ...forgotten];
  // Who is shown again after the storage was put back is uncertain from the beginning.
  const again = forgotten.length === 0 ? 0 : deliveriesOf(evidence, identity).length;
  const turned = all.map(
    ({ trace }) => trace.filter((step) => step.address !== null && step.new === 'uncertain').length,
  );
  return turned.reduce((sum, n) => sum + n, again);
}

import type { DeliveryStatus } from '@pmail/core/delivery/status.ts';
import type { MessageId } from '@pmail/core/ids.ts';
import type { SendBody } from '@pmail/core/message/request.ts';
import type { Waits } from '@pmail/engine/settings.ts';
import { expect } from 'vitest';
import type { CaseId } from '../case-list.ts';
import { hear, type Intent, intend, pursue, type Reply, request } from '../client.ts';
import type { Remote } from '../deployment.ts';
import { type Faults, NO_FAULTS } from '../faults.ts';
import type { PlannedFault } from '../planned.ts';
import type { SimIdentity, SimTenant } from '../population.ts';
import { Process } from '../process.ts';
import type { CallOutcome, CallRecord } from '../provider.ts';
import type { ReportPlan } from '../reports.ts';
import { playSchedule, type Report, type Stage } from '../schedule.ts';
import { installSyncCrypto } from '../sync-crypto.ts';
import type { Wiring } from '../wiring.ts';

installSyncCrypto();

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** A fixed schedule: what goes wrong at which place, what the provider does, and what people do at which time. */
export interface Scenario {
  /** Each has to strike; a scenario whose fault never came fails. */
  faults?: readonly PlannedFault[];
  /** Faults by chance, mostly of certainty. */
  always?: Partial<Faults>;
  /** What the provider does with the calls of one message, in order; the last goes on for ever. */
  provider?: readonly CallOutcome[];
  reports?: ReportPlan;
  tenants?: SimTenant[];
  start?: number;
  /** How long until faults stop and everything has to come to rest. */
  storm?: number;
  /** When the crons may look less often, in a scenario of many days. */
  quietAfter?: number;
  /** Reports come as they come and never again at rest, so that what hears them is the service's own patience. */
  reportsOnce?: boolean;
  /** Cases that the run has to meet. */
  meets: readonly CaseId[];
  /** After so many steps it is given up as one that never comes to rest. */
  stepsMax?: number;
  /** Waits of the service, where the real ones would take days. */
  waits?: Partial<Waits>;
  /** Broken parts between the engines and their world. */
  wiring?: Partial<Wiring>;
}

/** The world of a scenario, with what its actors do in it. */
export class Scene {
  readonly stage: Stage;
  readonly intents: Intent[] = [];

  constructor(stage: Stage) {
    this.stage = stage;
  }

  get now(): number {
    return this.stage.universe.now;
  }

  identity(index = 0): SimIdentity {
    const identity = this.stage.identities[index];
    if (identity === undefined) throw new Error('no such identity');
    return identity;
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.stage.universe.scheduler.after(ms, resolve);
    });
  }

  /** A send that is to be: known to the checkers, and not begun. */
  intend(key: string, body: Partial<SendBody> = {}, index = 0): Intent {
    const intent = intend(key, this.identity(index), { to: ['jo@example.net'], subject: key, text: 'Hello.', ...body });
    this.intents.push(intent);
    return intent;
  }

  /** An answer that is to be, to a message that was sent. */
  answer(key: string, to: Intent): Intent {
    const intent = this.intend(key, {}, this.stage.identities.indexOf(to.identity));
    Object.assign(intent, { operation: 'reply', target_id: this.row(to).id, body: { text: `Answer ${key}.` } });
    return intent;
  }

  /** One request of the client, which hears nothing after 30 s. */
  async request(intent: Intent): Promise<Reply> {
    const reply = await request(this.stage.deployment, intent, intent.body);
    if (reply.ok) hear(this.stage.deployment, intent, reply.message);
    return reply;
  }

  /** Requests until there is an answer. */
  async send(key: string, body: Partial<SendBody> = {}, index = 0): Promise<Intent> {
    const intent = this.intend(key, body, index);
    await this.pursue(intent);
    return intent;
  }

  pursue(intent: Intent): Promise<void> {
    return pursue(this.stage.deployment, intent, 50);
  }

  /** The mailbox as a person reaches it. */
  remote(index = 0): Remote {
    return this.stage.deployment.remote(new Process('person'), this.identity(index).identity_id);
  }

  /** The mailbox's row of a message. */
  row(intent: Intent): Row {
    const row = this.find(intent);
    if (row === undefined) throw new Error(`${intent.key} has no message`);
    return row;
  }

  find(intent: Intent): Row | undefined {
    return this.sql(intent).first<Row>(
      "SELECT id, status, status_reason, flags_json FROM messages WHERE direction = 'outbound' AND subject = ?",
      intent.body.subject ?? '',
    );
  }

  sql({ identity }: Intent): Stage['deployment']['directory'] {
    return this.stage.deployment.mailbox(identity.identity_id).sql;
  }

  deliveries(intent: Intent): Record<string, DeliveryStatus> {
    const rows = this.sql(intent).all<{ address: string; status: DeliveryStatus }>(
      'SELECT d.address, d.status FROM deliveries d JOIN messages m ON m.rowid = d.message_rowid WHERE m.id = ?',
      this.row(intent).id,
    );
    return Object.fromEntries(rows.map(({ address, status }) => [address, status]));
  }

  calls(intent: Intent): CallRecord[] {
    const id = this.find(intent)?.id;
    return this.stage.deployment.provider.log.filter(({ message_id }) => message_id === id);
  }

  events(intent: Intent): string[] {
    const id = this.row(intent).id;
    return this.sql(intent)
      .all<{ type: string; payload_json: string }>('SELECT type, payload_json FROM outbox ORDER BY seq')
      .filter(({ payload_json }) => payload_json.includes(id))
      .map(({ type }) => type);
  }

  audit(intent: Intent): { action: string; details_json: string }[] {
    return this.stage.deployment.directory.all(
      'SELECT action, details_json FROM audit_log WHERE target_id = ?',
      this.row(intent).id,
    );
  }

  /** What the quota of the first tenant has counted and holds. */
  get books(): Books {
    const tenant = this.identity().tenant_id;
    const { sql } = this.stage.deployment.quota(tenant);
    const allowance = sql.first<{ used: number; held: number }>(
      "SELECT used, held FROM allowances WHERE feature = 'sends'",
    );
    const counted = sql.first<{ n: number }>(
      "SELECT COALESCE(SUM(value), 0) AS n FROM counters WHERE metric = 'sends'",
    );
    return { used: allowance?.used ?? 0, held: allowance?.held ?? 0, counted: counted?.n ?? 0 };
  }

  /** Objects in the store under a prefix of any owner. */
  stored(part: string): string[] {
    return [...this.stage.deployment.store.objects.keys()].filter((key) => key.includes(part));
  }
}

export interface Row {
  id: MessageId;
  status: string;
  status_reason: string | null;
  flags_json: string;
}

export interface Books {
  used: number;
  held: number;
  counted: number;
}

export type Ended = Scene & { report: Report };

/**
 * Plays a scenario over the real engines, lets it come to rest, and holds it against every checker.
 *
 * @param act what people do; it has to come to its end before the faults do
 */
export async function play(scenario: Scenario, act: (scene: Scene) => Promise<void>): Promise<Ended> {
  const scene = await playToRest(scenario, act);
  const { violations, history: lines, struck, cases } = scene.report;
  const history = lines.join('\n');
  expect(violations, history).toEqual([]);
  const missed = (scenario.faults ?? []).filter((fault, index) => struck[index] !== timesOf(fault));
  expect(missed, `these faults did not strike as often as they were to\n${history}`).toEqual([]);
  const unmet = scenario.meets.filter((id) => !cases.has(id));
  expect(unmet, `these cases were not met\n${history}`).toEqual([]);
  return scene;
}

function timesOf(fault: PlannedFault): number {
  return 'crash' in fault ? 1 : (fault.times ?? 1);
}

/** The same, and leaves it to the caller to look at what the checkers say. */
export async function playToRest(
  { provider = ['accept'], reports = ['delivered'], storm = 20 * MINUTE, ...scenario }: Scenario,
  act: (scene: Scene) => Promise<void>,
): Promise<Ended> {
  let ended = false;
  let broken: unknown;
  const scenes: Scene[] = [];
  const { report } = await playSchedule({
    seed: 7,
    faults: { ...NO_FAULTS, ...scenario.always },
    planned: scenario.faults ?? [],
    tenants: scenario.tenants ?? [{ mode: 'live', identities: 2 }],
    plan: () => ({
      outcome: (_message, call) => provider[Math.min(call, provider.length - 1)] ?? 'accept',
      reports: () => reports,
      delay: () => SECOND,
    }),
    act: (own) => {
      const scene = new Scene(own);
      scenes.push(scene);
      act(scene)
        .catch((error: unknown) => {
          broken = error;
        })
        .finally(() => {
          ended = true;
        });
      return scene.intents;
    },
    stormy_ms: storm,
    ...(scenario.start === undefined ? {} : { start: scenario.start }),
    ...(scenario.quietAfter === undefined ? {} : { quiet_after_ms: scenario.quietAfter }),
    ...(scenario.reportsOnce === undefined ? {} : { reports_once: scenario.reportsOnce }),
    ...(scenario.stepsMax === undefined ? {} : { steps_max: scenario.stepsMax }),
    ...(scenario.waits === undefined ? {} : { waits: scenario.waits }),
    ...(scenario.wiring === undefined ? {} : { wiring: scenario.wiring }),
  });
  const history = report.history.join('\n');
  if (broken !== undefined) throw new Error(`the scenario broke off\n${history}`, { cause: broken });
  const [scene] = scenes;
  if (scene === undefined || !ended) throw new Error(`the scenario did not come to its end\n${history}`);
  return Object.assign(scene, { report });
}

import type { AlarmClock } from '@pmail/engine/ports.ts';

/**
 * The platform alarm of an object. Setting it joins the writes of the same turn, so it stands or falls with the
 * transaction around it; the promise only says when it is durable, which the platform's output gate waits for anyway.
 */
export function platformAlarm(ctx: DurableObjectState, onError: (error: unknown) => void): AlarmClock {
  return {
    set: (at) => {
      const done = at === null ? ctx.storage.deleteAlarm() : ctx.storage.setAlarm(at);
      ctx.waitUntil(done.catch(onError));
    },
  };
}

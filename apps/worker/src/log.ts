import type { Log } from '@pmail/engine/ports.ts';

const ORDER = { debug: 0, info: 1, warn: 2, error: 3 } as const;

/**
 * One JSON line per event: ids, codes and counts. Nothing of a message, no address, no URL and no secret goes in; the
 * type of the fields leaves no room for objects.
 */
export function createLog(level: string | undefined, base: Record<string, string> = {}): Log {
  const least = ORDER[(level ?? 'info') as keyof typeof ORDER] ?? ORDER.info;
  return (severity, event, fields) => {
    if (ORDER[severity] < least) return;
    const line = JSON.stringify({ level: severity, event, ...base, ...fields });
    if (severity === 'error') console.error(line);
    else if (severity === 'warn') console.warn(line);
    else console.log(line);
  };
}

/** What a log may say of an exception: its kind and where it was thrown. Its text can quote anything, so it stays out. */
export function errorPlace(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const { name, message, stack = '' } = error;
  const frames = stack.slice(stack.indexOf(message) + message.length);
  const [frame = ''] = /\bat \S.*/.exec(frames) ?? [];
  return frame === '' ? name : `${name} ${frame}`;
}

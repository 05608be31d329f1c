/** The heaps of a running workerd, asked over its inspector. */

/** An isolate and what it holds, in bytes. */
export interface Heap {
  /** Name of the service whose code runs in it. */
  isolate: string;
  used: number;
  /** Memory beside the heap that its objects stand for, such as buffers. */
  external: number;
}

interface Target {
  id: string;
  webSocketDebuggerUrl: string;
}

interface Usage {
  usedSize: number;
  embedderHeapUsedSize?: number;
  backingStorageSize?: number;
}

/** Under load, on a busy machine, an isolate comes to a question late. */
const ANSWER_MS = 120_000;

/**
 * Throws away what nothing refers to, then counts. `HeapProfiler.collectGarbage` would only put a task in line, which an
 * idle isolate never comes to; taking up the tracking of objects collects at once. Twice, as what was freed first may
 * free more.
 */
const COLLECT_AND_COUNT = [
  'HeapProfiler.startTrackingHeapObjects',
  'HeapProfiler.disable',
  'HeapProfiler.startTrackingHeapObjects',
  'HeapProfiler.disable',
  'Runtime.getHeapUsage',
];

/** What every isolate holds after everything that can be thrown away was. */
export async function heapsAfterCollection(port: number): Promise<Heap[]> {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as Target[];
  return Promise.all(
    targets.map(async ({ id, webSocketDebuggerUrl: url }) => {
      const usage = (await lastAnswer(url, COLLECT_AND_COUNT)) as Usage;
      const external = (usage.embedderHeapUsedSize ?? 0) + (usage.backingStorageSize ?? 0);
      return { isolate: id, used: usage.usedSize, external };
    }),
  );
}

/** Asks everything at once, which is answered in that order: each question by itself would wait for its turn. */
async function lastAnswer(url: string, methods: readonly string[]): Promise<unknown> {
  const socket = new WebSocket(url);
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`the inspector at ${url} does not answer`)), ANSWER_MS);
      socket.addEventListener('open', () => {
        for (const [id, method] of methods.entries()) socket.send(JSON.stringify({ id, method }));
      });
      socket.addEventListener('message', ({ data }) => {
        const { id, result, error } = JSON.parse(String(data)) as {
          id?: number;
          result?: unknown;
          error?: { message: string };
        };
        if (error !== undefined) reject(new Error(`the inspector refused: ${error.message}`));
        if (id === methods.length - 1) resolve(result);
      });
      const gone = (): void => reject(new Error(`the inspector at ${url} hung up`));
      socket.addEventListener('error', gone);
      socket.addEventListener('close', gone);
    });
  } finally {
    clearTimeout(timer);
    socket.close();
  }
}

/** What this thread has worked, in ms, whatever else the machine does. */
export function threadWorkMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

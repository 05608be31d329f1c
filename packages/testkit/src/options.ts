/** The options of a command: what a person got wrong is told in words, with the usage, and not as a stack of calls. */

export type Reading<T> =
  | { options: T }
  /** Nothing to run: what to print instead, and the status to end with. */
  | { say: string; status: 0 | 2 };

/** @param read throws an error with words for people when the arguments are none */
export function interpret<T>(usage: string, read: (args: string[]) => T, args: string[]): Reading<T> {
  if (args.includes('--help')) return { say: usage, status: 0 };
  try {
    return { options: read(args) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // Of an unknown option node also tells how it could be no option.
    return { say: `${message.split('. To specify')[0]}\n\n${usage}`, status: 2 };
  }
}

/** The options this command was given. Ends the process, with the usage, where they are wrong or help is asked for. */
export function readOptions<T>(usage: string, read: (args: string[]) => T): T {
  const reading = interpret(usage, read, process.argv.slice(2));
  if ('options' in reading) return reading.options;
  if (reading.status === 0) console.log(reading.say);
  else console.error(reading.say);
  process.exit(reading.status);
}

/** @throws when the value is no number above 0 */
export function positive(name: string, text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
  if (!(value > 0)) throw new Error(`--${name} needs a number above 0, not '${text}'`);
  return value;
}

/** @throws when the value is no whole number, or below the least */
export function whole(name: string, text: string, least = 0): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : -1;
  if (value < least) {
    throw new Error(`--${name} needs a whole number${least > 0 ? ` from ${least} on` : ''}, not '${text}'`);
  }
  return value;
}

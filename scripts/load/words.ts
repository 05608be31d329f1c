/** A number with its noun: 1 kill, 2 kills. */
export const counted = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`;

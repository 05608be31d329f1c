import type { Report } from './schedule.ts';

/** The report of a run in which nothing happened, unless a test says what did. */
export function report(more: Partial<Report> = {}): Report {
  return {
    seed: 1,
    violations: [],
    history: [],
    marks: new Map(),
    crashes: new Map(),
    cases: new Map(),
    happened: new Set(),
    transitions: new Map(),
    struck: [],
    steps: 10,
    virtual_ms: 0,
    ...more,
  };
}

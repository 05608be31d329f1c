import type { Reporter, TestModule } from 'vitest/node';

/** Ends the output with one line that a script can read: `N passed, N failed`. */
export default class PlainReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    let passed = 0;
    let failed = errors.length;
    for (const module of modules) {
      const states = [...module.children.allTests()].map((test) => test.result().state);
      passed += states.filter((state) => state === 'passed').length;
      const broken = states.filter((state) => state === 'failed').length;
      // A file that could not be loaded has no test that failed, and must not pass unseen.
      failed += module.state() === 'failed' && broken === 0 ? 1 : broken;
    }
    process.on('exit', () => console.log(`${passed} passed, ${failed} failed`));
  }
}

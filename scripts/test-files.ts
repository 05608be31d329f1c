/**
 * Which test files a project runs. Tests that need a program beside node are named `*.real.test.ts` and run only with
 * `npm run test:real`, which sets PM_REAL.
 */
export function testFiles(folder: string): { include: string[]; exclude: string[]; passWithNoTests: boolean } {
  const real = process.env['PM_REAL'] === '1';
  return {
    include: [real ? `${folder}/**/*.real.test.ts` : `${folder}/**/*.test.ts`],
    exclude: ['**/node_modules/**', ...(real ? [] : ['**/*.real.test.ts'])],
    passWithNoTests: true,
  };
}

/** The test projects. `vitest.config.ts` imports this list; vitest itself no longer reads it. */
export default [
  'packages/core',
  'packages/contracts',
  'packages/mime',
  'packages/engine',
  'packages/client',
  'packages/transports',
  'packages/testkit',
  'packages/sim',
  'scripts',
  'apps/worker',
];

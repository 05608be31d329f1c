/** What `exports` of `cloudflare:workers` holds: the entrypoints of this Worker, as calls to itself. */
declare namespace Cloudflare {
  interface GlobalProps {
    mainModule: typeof import('./index.ts');
  }
}

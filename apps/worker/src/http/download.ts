/**
 * Types a browser may be told as they are; anything else is only bytes. Nothing is ever shown inline. A message is not among
 * them: programs that open one show its HTML and run what it brings.
 */
const HARMLESS = new Set([
  'application/pdf',
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'text/plain',
  'text/csv',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation',
]);

/** Headers of a file for download: always an attachment, never sniffed, never run (RFC 6266, RFC 8187). */
export function downloadHeaders(file: { filename: string; contentType: string; size: number }): Record<string, string> {
  const type = file.contentType.toLowerCase();
  const ascii = file.filename.replace(/[^\x20-\x7e]|["\\%]/g, '_');
  const encoded = encodeURIComponent(file.filename.toWellFormed()).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return {
    'content-type': HARMLESS.has(type) ? type : 'application/octet-stream',
    'content-length': String(file.size),
    'content-disposition': `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`,
    'content-security-policy': 'sandbox',
    'cache-control': 'private, no-store',
    'x-content-type-options': 'nosniff',
  };
}

/** How attempts at a webhook endpoint end, and what that means for the endpoint. */

export const WEBHOOK_ERRORS = [
  'timeout',
  'dns',
  'tls',
  'connect',
  'redirect',
  'status_4xx',
  'status_410',
  'status_5xx',
  'ssrf_blocked',
  'invalid_url',
  'secret_unavailable',
  'event_unavailable',
  'endpoint_disabled',
] as const;
export type WebhookError = (typeof WEBHOOK_ERRORS)[number];

export interface WebhookResult {
  error: WebhookError | null;
  http_status: number | null;
}

/** What a status of the receiver means. Redirects are never followed, and an odd 1xx is no confirmation either. */
export function judgeStatus(status: number): WebhookResult {
  return { http_status: status, error: statusError(status) };
}

function statusError(status: number): WebhookError | null {
  if (status >= 200 && status < 300) return null;
  if (status >= 300 && status < 400) return 'redirect';
  if (status === 410) return 'status_410';
  return status >= 400 && status < 500 ? 'status_4xx' : 'status_5xx';
}

/** Whether trying again can help: an event that is gone stays gone, a disabled endpoint is not called. */
export function isFinal(error: WebhookError): boolean {
  return error === 'event_unavailable' || error === 'endpoint_disabled' || error === 'status_410';
}

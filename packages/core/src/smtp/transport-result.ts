import type { TransportResult } from '../transport/types.ts';
import type { ExchangeResult } from './exchange-types.ts';

/**
 * The outcome of an exchange as every transport reports it.
 *
 * @param host the relay
 * @param rfcMessageId the composed Message-ID, which relays keep; without brackets
 */
export function transportResult(result: ExchangeResult, host: string, rfcMessageId: string): TransportResult {
  switch (result.kind) {
    case 'accepted':
      return {
        kind: 'accepted',
        provider_message_id: `smtp:${host}:${rfcMessageId}`,
        rfc_message_id: rfcMessageId,
        refused: result.refused,
        deferred: result.deferred,
        scheduled: [],
        copies: [],
      };
    case 'rejected': {
      const { reason, code, detail, refused } = result;
      return { kind: 'rejected', reason, code, detail, refused };
    }
    case 'retry_later': {
      const { code, detail, refused } = result;
      return { kind: 'retry_later', class: 'relay', code, detail, refused };
    }
    case 'unknown':
      return result;
  }
}

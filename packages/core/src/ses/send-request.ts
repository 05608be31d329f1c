import { toBase64 } from '../hash.ts';
import type { OutgoingMessage } from '../transport/types.ts';
import { SES_CONFIGURATION_SET, SES_MESSAGE_TAG } from './names.ts';
import { type AwsCredentials, amzDate, signAws } from './sigv4.ts';

export interface SesAccount extends AwsCredentials {
  region: string;
}

/** A request ready to be made. */
export interface SesRequest {
  url: string;
  method: 'POST';
  headers: Record<string, string>;
  body: string;
}

const PATH = '/v2/email/outbound-emails';

/**
 * SendEmail of the SES API v2 with the message as it is stored. The recipients are those of the envelope alone: who is
 * named in the headers and gets nothing, or gets it blind, is not changed by them.
 */
export async function sesSendRequest(message: OutgoingMessage, account: SesAccount, now: number): Promise<SesRequest> {
  const body = JSON.stringify({
    FromEmailAddress: message.from.address,
    Destination: { ToAddresses: message.to, CcAddresses: message.cc, BccAddresses: message.bcc },
    Content: { Raw: { Data: toBase64(message.mime) } },
    ConfigurationSetName: SES_CONFIGURATION_SET,
    EmailTags: [{ Name: SES_MESSAGE_TAG, Value: message.message_id }],
  });
  const host = `email.${account.region}.amazonaws.com`;
  const signed = { 'content-type': 'application/json', host, 'x-amz-date': amzDate(now) };
  const { authorization } = await signAws(
    { method: 'POST', path: PATH, query: [], headers: Object.entries(signed), body },
    account,
    { region: account.region, service: 'ses' },
    now,
  );
  // The host is not ours to write: it follows from the URL.
  const { host: _host, ...headers } = signed;
  return { url: `https://${host}${PATH}`, method: 'POST', headers: { ...headers, authorization }, body };
}

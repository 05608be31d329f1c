import { SERVICE_NAME } from '../brand.ts';

/** What Amazon SES and this service call a message, and the things that are set up there. */

/** Name of the tag by which a send carries our own message id through SES and back in its events. */
export const SES_MESSAGE_TAG = 'pmail-message';

/** The configuration set whose events come to us. */
export const SES_CONFIGURATION_SET = SERVICE_NAME;

/** A region as AWS names them (`eu-west-1`); it becomes part of host names, so nothing else may pass. */
export function isAwsRegion(text: string): boolean {
  return /^[a-z]{2}(?:-[a-z]+)+-\d{1,2}$/.test(text);
}

/**
 * The Message-ID that recipients see, without brackets: SES replaces the one that a message comes with, and tells only the
 * bare id, whatever its events say elsewhere.
 */
export function sesWireId(messageId: string, region: string): string {
  return `${messageId}@${region === 'us-east-1' ? 'email' : region}.amazonses.com`;
}

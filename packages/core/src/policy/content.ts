import { codePoints, hasControlCharacter, hasLoneSurrogate } from '../address/names.ts';
import { cleanFilename } from '../compose/filename.ts';
import { utf8Length } from '../hash.ts';
import { LIMITS } from '../limits.ts';
import type { AttachmentInput, SendBody, SendOperation } from '../message/request.ts';
import type { FieldError } from '../result.ts';

const LABEL = /^[a-z0-9][a-z0-9_:-]{0,63}$/;
/** type/subtype in the tokens of RFC 2045; parameters are refused, charset and name are ours to write. */
const CONTENT_TYPE = /^[A-Za-z0-9!#$&^_.+-]{1,127}\/[A-Za-z0-9!#$&^_.+-]{1,127}$/;
const CONTENT_ID = /^[\x21\x23-\x27\x2a\x2b\x2d\x2f-\x39\x3d\x3f\x41-\x5a\x5e-\x7e.@]+$/;

/** Everything about the content that does not depend on tenant, identity or thread. */
export function checkContent(body: SendBody, operation: SendOperation): FieldError[] {
  const errors: FieldError[] = [];
  const bad = (path: string, message: string): void => {
    errors.push({ path, message });
  };
  const text = body.text ?? '';
  const html = body.html ?? '';
  // A forward says enough with the message it carries.
  if (operation !== 'forward' && text === '' && html === '') bad('text', 'text or html must be present');
  if (hasLoneSurrogate(text)) bad('text', 'is not well-formed Unicode');
  if (hasLoneSurrogate(html)) bad('html', 'is not well-formed Unicode');
  const subject = body.subject ?? '';
  if (codePoints(subject) > LIMITS.subject_chars_max) bad('subject', `is over ${LIMITS.subject_chars_max} characters`);
  if (hasControlCharacter(subject)) bad('subject', 'contains a control character');
  if (hasLoneSurrogate(subject)) bad('subject', 'is not well-formed Unicode');
  const attachments = body.attachments ?? [];
  if (attachments.length > LIMITS.attachments_count_max) {
    bad('attachments', `are more than ${LIMITS.attachments_count_max}`);
  }
  const contentIds = new Set<string>();
  attachments.forEach((attachment, index) => {
    for (const [field, message] of attachmentFaults(attachment, contentIds)) {
      bad(`attachments[${index}].${field}`, message);
    }
  });
  const labels = body.labels ?? [];
  if (new Set(labels).size > LIMITS.labels_per_message_max)
    bad('labels', `are more than ${LIMITS.labels_per_message_max}`);
  labels.forEach((label, index) => {
    if (!LABEL.test(label)) bad(`labels[${index}]`, `must match ${LABEL.source}`);
  });
  for (const [path, message] of metadataFaults(body.metadata ?? {})) bad(path, message);
  return errors;
}

function attachmentFaults(attachment: AttachmentInput, contentIds: Set<string>): [string, string][] {
  const faults: [string, string][] = [];
  const { filename, content_type, disposition = 'attachment', content_id } = attachment;
  if (hasLoneSurrogate(filename)) faults.push(['filename', 'is not well-formed Unicode']);
  else if (utf8Length(cleanFilename(filename, content_type)) > LIMITS.attachment_filename_bytes_max) {
    faults.push(['filename', `is over ${LIMITS.attachment_filename_bytes_max} bytes`]);
  }
  if (!CONTENT_TYPE.test(content_type)) faults.push(['content_type', 'must be type/subtype without parameters']);
  if (disposition === 'inline' && content_id === undefined) faults.push(['content_id', 'is required on inline parts']);
  if (content_id !== undefined) {
    const id = content_id.replace(/^<(.*)>$/s, '$1');
    if (!CONTENT_ID.test(id) || id.length > LIMITS.content_id_chars_max) {
      faults.push(['content_id', 'must be an id without spaces, quotes or brackets']);
    } else if (contentIds.has(id)) faults.push(['content_id', 'is used by another part']);
    contentIds.add(id);
  }
  return faults;
}

function metadataFaults(metadata: Record<string, string>): [string, string][] {
  const faults: [string, string][] = [];
  const keys = Object.keys(metadata);
  if (keys.length > LIMITS.metadata_keys_max) faults.push(['metadata', `has over ${LIMITS.metadata_keys_max} keys`]);
  for (const key of keys) {
    const path = `metadata.${key}`;
    if (key.length === 0 || codePoints(key) > LIMITS.metadata_key_chars_max) {
      faults.push([path, `key must have 1 to ${LIMITS.metadata_key_chars_max} characters`]);
    }
    const value = metadata[key] ?? '';
    if (hasLoneSurrogate(key) || hasLoneSurrogate(value)) faults.push([path, 'is not well-formed Unicode']);
    if (utf8Length(value) > LIMITS.metadata_value_bytes_max) {
      faults.push([path, `is over ${LIMITS.metadata_value_bytes_max} bytes`]);
    }
  }
  return faults;
}

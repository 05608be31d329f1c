import { describe, expect, it } from 'vitest';
import { inboundAttachmentKey, rawKey, sentAttachmentKey, sentKey, sentPrefix } from './keys.ts';

const OWNER = { tenant_id: 'ten_1', identity_id: 'idn_2' } as const;

describe('keys of the object store', () => {
  it('have the form of the design', () => {
    expect(sentKey(OWNER, 'msg_3')).toBe('t/ten_1/i/idn_2/out/msg_3.eml');
    expect(sentAttachmentKey(OWNER, 'msg_3', 'att_4')).toBe('t/ten_1/i/idn_2/out/msg_3/a/att_4');
    expect(rawKey(OWNER, 'msg_3')).toBe('t/ten_1/i/idn_2/m/msg_3/raw.eml');
    expect(inboundAttachmentKey(OWNER, 'msg_3', 'att_4')).toBe('t/ten_1/i/idn_2/m/msg_3/a/att_4');
  });

  it('of sent mail all begin with its prefix, those of arrived mail do not', () => {
    for (const key of [sentKey(OWNER, 'msg_3'), sentAttachmentKey(OWNER, 'msg_3', 'att_4')]) {
      expect(key.startsWith(sentPrefix(OWNER))).toBe(true);
    }
    expect(rawKey(OWNER, 'msg_3').startsWith(sentPrefix(OWNER))).toBe(false);
  });
});

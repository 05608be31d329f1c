import { describe, expect, it } from 'vitest';
import type { AttachmentInput, SendBody, SendOperation } from '../message/request.ts';
import { checkContent } from './content.ts';

function paths(body: SendBody, operation: SendOperation = 'send'): string[] {
  return checkContent({ text: 'Hello', ...body }, operation).map(({ path }) => path);
}

function file(overrides: Partial<AttachmentInput> = {}): AttachmentInput {
  return { filename: 'a.pdf', content_type: 'application/pdf', content_base64: 'AA==', ...overrides };
}

function filePaths(overrides: Partial<AttachmentInput>): string[] {
  return paths({ attachments: [file(overrides)] });
}

describe('bodies', () => {
  it('need text or html, one of them', () => {
    expect(paths({ text: 'x', html: undefined })).toEqual([]);
    expect(paths({ text: undefined, html: '<p>x</p>' })).toEqual([]);
    expect(paths({ text: undefined, html: undefined })).toEqual(['text']);
    expect(paths({ text: '', html: '' })).toEqual(['text']);
  });

  it.each(['reply', 'reply_all'] as const)('are needed in a %s too', (operation) => {
    expect(paths({ text: undefined }, operation)).toEqual(['text']);
  });

  it('are not needed in a forward', () => {
    expect(paths({ text: undefined }, 'forward')).toEqual([]);
  });

  it('are well-formed Unicode', () => {
    expect(paths({ text: 'a\ud83d' })).toEqual(['text']);
    expect(paths({ html: '<p>\ude00</p>' })).toEqual(['html']);
    expect(paths({ text: '😀 \r\n\t\u0000' })).toEqual([]);
  });
});

describe('the subject', () => {
  it('may be missing or empty', () => {
    expect(paths({ subject: undefined })).toEqual([]);
    expect(paths({ subject: '' })).toEqual([]);
  });

  it('has at most 998 characters, counted as people do', () => {
    for (const char of ['a', 'é', '中', '😀']) {
      expect(paths({ subject: char.repeat(998) })).toEqual([]);
      expect(paths({ subject: char.repeat(999) })).toEqual(['subject']);
    }
  });

  it('has no control character and no half character', () => {
    for (const subject of ['a\r\nBcc: x@example.net', 'a\nb', 'a\tb', 'a\u0000', 'a\u0085', 'a\u2029', 'a\ud83d']) {
      expect(paths({ subject })).toEqual(['subject']);
    }
  });
});

describe('attachments', () => {
  it('are at most 32', () => {
    expect(paths({ attachments: Array.from({ length: 32 }, () => file()) })).toEqual([]);
    expect(paths({ attachments: Array.from({ length: 33 }, () => file()) })).toEqual(['attachments']);
  });

  it('have names of at most 255 bytes', () => {
    expect(filePaths({ filename: `${'é'.repeat(125)}a.txt` })).toEqual([]);
    expect(filePaths({ filename: `${'é'.repeat(126)}.txt` })).toEqual(['attachments[0].filename']);
    expect(filePaths({ filename: '請'.repeat(86) })).toEqual(['attachments[0].filename']);
  });

  it('have their names cleaned before they are measured', () => {
    expect(filePaths({ filename: `C:\\${'x'.repeat(300)}\\a.pdf` })).toEqual([]);
    expect(filePaths({ filename: `${'\u0000'.repeat(300)}a.pdf` })).toEqual([]);
    expect(filePaths({ filename: '...' })).toEqual([]);
  });

  it('have names of well-formed Unicode', () => {
    expect(filePaths({ filename: 'a\ud83d.pdf' })).toEqual(['attachments[0].filename']);
  });

  it.each(['application/pdf', 'IMAGE/PNG', 'application/vnd.ms-excel.sheet.macroEnabled.12', 'image/svg+xml'])(
    'have a type: %s',
    (content_type) => {
      expect(filePaths({ content_type })).toEqual([]);
    },
  );

  it.each([
    'pdf',
    'application/',
    '/pdf',
    'application/pdf; name="x"',
    'application/pdf\r\nX-A: b',
    'application /pdf',
    'a/b/c',
    'text/plän',
    '',
  ])('cannot have the type %j', (content_type) => {
    expect(filePaths({ content_type })).toEqual(['attachments[0].content_type']);
  });

  it('need a content id when inline, and only then', () => {
    expect(filePaths({ disposition: 'inline' })).toEqual(['attachments[0].content_id']);
    expect(filePaths({ disposition: 'inline', content_id: 'logo' })).toEqual([]);
    expect(filePaths({ disposition: 'attachment' })).toEqual([]);
  });

  it.each(['logo', 'logo@example.com', '<logo@example.com>', 'a.b-c_d', `<${'x'.repeat(255)}>`])(
    'take the content id %j',
    (content_id) => {
      expect(filePaths({ content_id })).toEqual([]);
    },
  );

  it.each(['', '<>', 'a b', 'a\r\nb', 'a>b', '<a', 'a"b', 'a(b)', 'löwe', 'x'.repeat(256)])(
    'refuse the content id %j',
    (content_id) => {
      expect(filePaths({ content_id })).toEqual(['attachments[0].content_id']);
    },
  );

  it('have content ids of their own, with or without brackets', () => {
    const attachments = [file({ content_id: 'logo' }), file({ content_id: 'other' }), file({ content_id: '<logo>' })];
    expect(paths({ attachments })).toEqual(['attachments[2].content_id']);
  });
});

describe('labels', () => {
  it.each(['a', '0', 'needs-review', 'queue:eu_1', 'a'.repeat(64)])('pass: %s', (label) => {
    expect(paths({ labels: [label] })).toEqual([]);
  });

  it.each(['', 'A', '-a', ':a', 'a b', 'ä', 'a'.repeat(65), 'a\n'])('are refused: %j', (label) => {
    expect(paths({ labels: ['fine', label] })).toEqual(['labels[1]']);
  });

  it('are at most 64 different ones', () => {
    const labels = Array.from({ length: 64 }, (_, i) => `l${i}`);
    expect(paths({ labels: [...labels, 'l0', 'l1'] })).toEqual([]);
    expect(paths({ labels: [...labels, 'l64'] })).toEqual(['labels']);
  });
});

describe('metadata', () => {
  it('has at most 16 keys', () => {
    const entries = (n: number) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, 'v']));
    expect(paths({ metadata: entries(16) })).toEqual([]);
    expect(paths({ metadata: entries(17) })).toEqual(['metadata']);
  });

  it('has keys of 1 to 64 characters', () => {
    expect(paths({ metadata: { ['😀'.repeat(64)]: 'v' } })).toEqual([]);
    expect(paths({ metadata: { ['k'.repeat(65)]: 'v' } })).toEqual([`metadata.${'k'.repeat(65)}`]);
    expect(paths({ metadata: { '': 'v' } })).toEqual(['metadata.']);
  });

  it('has values of at most 512 bytes, empty ones too', () => {
    expect(paths({ metadata: { a: 'v'.repeat(512), b: 'é'.repeat(256), c: '' } })).toEqual([]);
    expect(paths({ metadata: { a: 'v'.repeat(513), b: 'é'.repeat(257) } })).toEqual(['metadata.a', 'metadata.b']);
  });

  it('is well-formed Unicode', () => {
    expect(paths({ metadata: { a: '\ud83d' } })).toEqual(['metadata.a']);
    expect(paths({ metadata: { '\ud83d': 'v' } })).toHaveLength(1);
  });
});

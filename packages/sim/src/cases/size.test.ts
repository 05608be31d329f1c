import { LIMITS } from '@pmail/core/limits.ts';
import { describe, expect, test } from 'vitest';
import { play, SECOND } from './scenario.fixture.ts';

/** S15: a row or a body larger than the platform takes. The simulated storage refuses what the real one refuses. */

const LINE = 'Ein langer Text mit Umlauten: äöüß, und 世界.\n';

function textOf(bytes: number): string {
  return LINE.repeat(Math.ceil(bytes / new TextEncoder().encode(LINE).length));
}

describe('S15 a text', () => {
  test('S15 larger than a row holds is cut in the row, and leaves whole', async () => {
    const text = textOf(LIMITS.row_text_bytes_max + 50_000);
    const scene = await play({ meets: ['S15'] }, async (own) => {
      const intent = own.intend('key', { text });
      expect(await own.request(intent)).toMatchObject({ ok: true, message: { flags: ['body_truncated'] } });
      const again = await own.request(intent);
      // The answer under the key carries what the first one carried, though no row could hold it.
      expect(again).toMatchObject({ ok: true, deduplicated: true });
      expect(intent.answers[1]).toEqual(intent.answers[0]);
    });
    const [key] = scene.stored('/out/');
    const stored = scene.stage.deployment.store.objects.get(key ?? '')?.bytes.length ?? 0;
    expect(stored).toBeGreaterThan(text.length);
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });

  test('S15 the largest in every field at once fits into the rows', async () => {
    const scene = await play({ meets: ['S15'] }, async (own) => {
      const html = `<p>${textOf(LIMITS.row_html_bytes_max).replaceAll('\n', '<br>')}</p>`;
      const intent = own.intend('key', {
        text: textOf(LIMITS.row_text_bytes_max),
        html,
        labels: Array.from({ length: LIMITS.labels_per_message_max }, (_, n) => `label-${n}`),
        metadata: Object.fromEntries(
          Array.from({ length: LIMITS.metadata_keys_max }, (_, n) => [
            `key-${n}`,
            'x'.repeat(LIMITS.metadata_value_bytes_max),
          ]),
        ),
      });
      expect(await own.request(intent)).toMatchObject({ ok: true });
    });
    expect(scene.stage.deployment.provider.log).toHaveLength(1);
  });
});

describe('S15 a message', () => {
  test('S15 larger than any transport takes is refused, nothing of it is kept, and its key is free', async () => {
    const content_base64 = 'AAAA'.repeat(LIMITS.composed_bytes_max / 4);
    const attachments = [{ filename: 'large.bin', content_type: 'application/octet-stream', content_base64 }];
    const scene = await play({ meets: ['S15'] }, async (own) => {
      const intent = own.intend('key', { attachments });
      expect(await own.request(intent)).toMatchObject({ ok: false, code: 'message_too_large' });
      expect(own.stored('/out/')).toEqual([]);
      expect(own.books).toEqual({ used: 0, held: 0, counted: 0 });
      intent.body = { ...intent.body, attachments: [] };
      expect(await own.request(intent)).toMatchObject({ ok: true, deduplicated: false });
    });
    expect(scene.books).toEqual({ used: 1, held: 0, counted: 1 });
  });

  test('S15 just within the bound is sent with all its files', async () => {
    const content_base64 = 'AAAA'.repeat(300_000);
    const file = (n: number) => ({ filename: `f${n}.bin`, content_type: 'application/octet-stream', content_base64 });
    const scene = await play({ meets: [] }, async (own) => {
      const intent = own.intend('key', { attachments: [file(1), file(2), file(3), file(4)] });
      expect(await own.request(intent)).toMatchObject({ ok: true });
      await own.wait(20 * SECOND);
      expect(own.row(intent).status).toBe('delivered');
    });
    expect(scene.stored('/out/')).toHaveLength(5);
  });

  test('S15 to as many people as there may be, with long names, fits into statements of a hundred values', async () => {
    const to = Array.from({ length: LIMITS.recipients_count_max }, (_, n) => ({
      address: `${'r'.repeat(50)}${n}@${'d'.repeat(60)}.example`,
      name: 'N'.repeat(LIMITS.display_name_chars_max),
    }));
    const scene = await play({ meets: [] }, async (own) => {
      const intent = own.intend('key', { to });
      expect(await own.request(intent)).toMatchObject({ ok: true });
      await own.wait(30 * SECOND);
      expect(Object.values(own.deliveries(intent)).every((status) => status === 'delivered')).toBe(true);
    });
    expect(scene.books).toEqual({ used: to.length, held: 0, counted: 1 });
  });
});

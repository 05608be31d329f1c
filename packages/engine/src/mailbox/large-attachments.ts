import { encodedSize, sizeText } from '@pmail/core/compose/size-text.ts';
import type { AttachmentLink, ComposedMail, ComposeInput } from '@pmail/core/compose/types.ts';
import { LIMITS } from '@pmail/core/limits.ts';
import { type LinkKey, mintLink } from '@pmail/core/links.ts';
import type { MailboxWorld } from './world.ts';

/** How attachments that do not fit become links; null where the policy refuses them instead. */
export interface Linking {
  key: LinkKey;
  /** Scheme and host of the API, where the links lead. */
  origin: string;
  ttl_hours: number;
}

export interface FittedMail {
  composed: ComposedMail;
  /** Ids of the attachments that are linked and not part of the message. */
  linked: ReadonlySet<string>;
}

/**
 * Composes a message; where it is too large and links are allowed, replaces attachments by links, largest first, until
 * it fits. Parts shown inside the HTML go last, because the text would lose them.
 */
export async function composeToFit(
  world: MailboxWorld,
  input: ComposeInput,
  linking: Linking | null,
): Promise<FittedMail> {
  let composed = await world.composer.compose(input);
  const linked = new Set<string>();
  if (linking === null) return { composed, linked };
  const candidates = [...input.attachments].sort(
    (a, b) =>
      Number(a.disposition === 'inline') - Number(b.disposition === 'inline') || b.content.length - a.content.length,
  );
  const links: AttachmentLink[] = [];
  const expires = Math.floor(input.date / 1_000) + linking.ttl_hours * 3_600;
  while (composed.mime.length > LIMITS.composed_bytes_max && candidates.length > 0) {
    let excess = composed.mime.length - LIMITS.composed_bytes_max;
    while (excess > 0) {
      const next = candidates.shift();
      if (next === undefined) break;
      linked.add(next.id);
      excess -= encodedSize(next.content.length);
      const token = await mintLink(linking.key, {
        ...world.owner,
        message_id: input.message_id,
        attachment_id: next.id,
        expires,
      });
      links.push({
        filename: next.filename,
        size: sizeText(next.content.length),
        url: `${linking.origin}/v1/links/${token}`,
        expires_at: expires * 1_000,
      });
    }
    const attachments = input.attachments.filter(({ id }) => !linked.has(id));
    composed = await world.composer.compose({ ...input, attachments, links });
  }
  return { composed, linked };
}

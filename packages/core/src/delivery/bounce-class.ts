import type { AbuseOutcome, DeliveryKind, SuppressionReason } from './events.ts';

/**
 * What kind of failure a code names (RFC 3463): the address itself, a full mailbox, anything else about the system or
 * the message (its policy, its protocol, the size or the content it takes), or something that passes.
 */
export type BounceClass = 'address' | 'mailbox_full' | 'system' | 'transient' | 'unspecified';

/**
 * System, routing, protocol, content and policy; of the mailbox codes, too long a message (2.3) and a list that cannot be
 * expanded (2.4). None says that the address is wrong, so none keeps anybody from being written to again.
 */
const ABOUT_SYSTEM = /^(?:[34567]\.|2\.[34]$)/;

/** Reads the enhanced code first, else the reply code; a permanent one without usable detail counts as the address. */
export function bounceClass(enhancedCode: string | null, smtpCode: string | null): BounceClass {
  const match = /^([245])\.(\d{1,3})\.(\d{1,3})$/.exec(enhancedCode ?? '');
  if (match !== null) {
    const [, severity, subject, detail] = match;
    if (subject === '2' && detail === '2') return 'mailbox_full';
    if (severity === '4') return 'transient';
    if (severity === '5') return ABOUT_SYSTEM.test(`${subject}.${detail}`) ? 'system' : 'address';
  }
  if (smtpCode?.startsWith('4')) return 'transient';
  if (smtpCode?.startsWith('5')) return 'address';
  return 'unspecified';
}

export interface BounceVerdict {
  hard: boolean;
  outcome: AbuseOutcome;
  suppress: SuppressionReason | null;
}

/**
 * @param declared what the provider itself says, where it does; a full mailbox is soft whatever it says
 */
export function judgeBounce(
  declared: 'hard' | 'soft' | null,
  enhancedCode: string | null,
  smtpCode: string | null,
): BounceVerdict {
  const kind = bounceClass(enhancedCode, smtpCode);
  const hard =
    kind === 'mailbox_full'
      ? false
      : declared === null
        ? kind !== 'transient' && kind !== 'unspecified'
        : declared === 'hard';
  if (!hard) return { hard: false, outcome: 'other', suppress: null };
  return { hard: true, outcome: 'bounced', suppress: kind === 'system' ? null : 'hard_bounce' };
}

/** Outcome and suppression of the kinds that are not bounces. */
export function judgeOther(kind: Exclude<DeliveryKind, 'bounced'>): Pick<BounceVerdict, 'outcome' | 'suppress'> | null {
  switch (kind) {
    case 'delivered':
      return { outcome: 'delivered', suppress: null };
    case 'complained':
      return { outcome: 'complained', suppress: 'complaint' };
    case 'failed':
    case 'rejected':
      return { outcome: 'other', suppress: null };
    case 'deferred':
      return null;
  }
}

import type { Mailbox } from '@pmail/core/address/address.ts';
import type { WireError } from '@pmail/core/errors.ts';
import type { EventEnvelope } from '@pmail/core/events/types.ts';
import type { AttachmentInput, RecipientInput, SendBody } from '@pmail/core/message/request.ts';
import type {
  AttachmentResource,
  DeliveryResource,
  MessageResource,
  ThreadResource,
  TrustResource,
} from '@pmail/core/message/resource.ts';
import type { Policy } from '@pmail/core/policy/document.ts';
import type { AddressFacts, FilterReason, IdentityFacts, TenantFacts } from '@pmail/core/policy/types.ts';
import type { FieldError } from '@pmail/core/result.ts';
import { expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { attachment, attachmentInput } from './attachment.ts';
import type { mailbox } from './common.ts';
import type { fieldError, wireError } from './error.ts';
import type { event } from './event.ts';
import type { ADDRESS_STATUSES, IDENTITY_STATUSES, PAUSE_REASONS } from './identity.ts';
import type { delivery, message } from './message.ts';
import type { policy, policyPatch } from './policy.ts';
import type { dryRunAnswer, forwardBody, replyBody, sendBody } from './send.ts';
import type { TENANT_MODES, TENANT_STATUSES } from './tenant.ts';
import type { thread } from './thread.ts';

// The compiler does the work here: a schema and the type of the core that drift apart do not compile.

test('answers are exactly the resources of the core', () => {
  expectTypeOf<z.output<typeof mailbox>>().toEqualTypeOf<Mailbox>();
  expectTypeOf<z.output<typeof message>>().toEqualTypeOf<MessageResource>();
  expectTypeOf<NonNullable<z.output<typeof message>['trust']>>().toEqualTypeOf<TrustResource>();
  expectTypeOf<z.output<typeof delivery>>().toEqualTypeOf<DeliveryResource>();
  expectTypeOf<z.output<typeof attachment>>().toEqualTypeOf<AttachmentResource>();
  expectTypeOf<z.output<typeof thread>>().toEqualTypeOf<ThreadResource>();
  expectTypeOf<z.output<typeof event>>().toEqualTypeOf<EventEnvelope>();
  expectTypeOf<z.output<typeof policy>>().toEqualTypeOf<Policy>();
  expectTypeOf<z.output<typeof wireError>>().toEqualTypeOf<WireError>();
  expectTypeOf<z.output<typeof fieldError>>().toEqualTypeOf<FieldError>();
});

test('send bodies are send bodies of the core, and between them have every field of it', () => {
  expectTypeOf<z.output<typeof attachmentInput>>().toEqualTypeOf<AttachmentInput>();
  expectTypeOf<z.output<typeof sendBody>['to'][number]>().toEqualTypeOf<RecipientInput>();
  expectTypeOf<z.output<typeof sendBody>>().toExtend<SendBody>();
  expectTypeOf<z.output<typeof replyBody>>().toExtend<SendBody>();
  expectTypeOf<z.output<typeof forwardBody>>().toExtend<SendBody>();
  expectTypeOf<
    keyof z.output<typeof sendBody> | keyof z.output<typeof replyBody> | keyof z.output<typeof forwardBody>
  >().toEqualTypeOf<keyof SendBody>();
  expectTypeOf<keyof z.output<typeof replyBody>>().toEqualTypeOf<
    'text' | 'html' | 'attachments' | 'kind' | 'labels' | 'headers' | 'metadata' | 'from_address'
  >();
});

test('bodies are checked, not rewritten', () => {
  expectTypeOf<z.input<typeof sendBody>>().toEqualTypeOf<z.output<typeof sendBody>>();
  expectTypeOf<z.input<typeof policyPatch>>().toEqualTypeOf<z.output<typeof policyPatch>>();
});

type Resettable<T> = { [K in keyof T]?: T[K] | null | undefined };
type Patch = {
  [K in keyof Policy]?: ([Policy[K]] extends [object] ? Resettable<Policy[K]> : Policy[K]) | null | undefined;
};

test('a policy patch has the fields of the policy, each of which may be missing or null', () => {
  expectTypeOf<z.output<typeof policyPatch>>().toEqualTypeOf<Patch>();
});

test('names of states are those of the core', () => {
  expectTypeOf<(typeof TENANT_STATUSES)[number]>().toEqualTypeOf<TenantFacts['status']>();
  expectTypeOf<(typeof TENANT_MODES)[number]>().toEqualTypeOf<TenantFacts['mode']>();
  expectTypeOf<(typeof IDENTITY_STATUSES)[number]>().toEqualTypeOf<IdentityFacts['status']>();
  expectTypeOf<(typeof PAUSE_REASONS)[number] | null>().toEqualTypeOf<IdentityFacts['pause_reason']>();
  expectTypeOf<(typeof ADDRESS_STATUSES)[number]>().toEqualTypeOf<AddressFacts['status']>();
  expectTypeOf<z.output<typeof dryRunAnswer>['recipients'][number]['reason']>().toEqualTypeOf<FilterReason | null>();
});

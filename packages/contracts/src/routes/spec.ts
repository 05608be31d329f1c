import type { ErrorCode } from '@pmail/core/errors.ts';
import type { z } from 'zod';
import type { KeyLevel, Permission } from '../permissions.ts';

export type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

/** Who may call a route. There is no default: a route that does not say is a type error. */
export type Access =
  | { kind: 'public' }
  | {
      kind: 'key';
      /** All of them are needed; none means that any valid key will do. */
      permissions: readonly Permission[];
      /** Key levels that may call; every level when missing. Checked after the permissions. */
      levels?: readonly KeyLevel[];
      /** Levels that need none of the permissions, because the route shows them only what is their own. */
      waivedFor?: readonly KeyLevel[];
    };

/** One kind of success. A null schema without a content type is an answer without a body. */
export interface SuccessSpec {
  status: number;
  description: string;
  schema: z.ZodType | null;
  /** Only where the body is not JSON of the schema. */
  contentType?: string;
}

/** One route: all that the router enforces and all that the OpenAPI document says about it. */
export interface RouteSpec {
  method: Method;
  /** As OpenAPI writes it: `/v1/identities/{identity_id}/messages`. */
  path: string;
  summary: string;
  description?: string;
  tag: string;
  access: Access;
  /**
   * Whether the route looks at `Idempotency-Key`. A dry run needs none even where it is `required`, and neither looks
   * one up nor records one.
   */
  idempotency: 'required' | 'optional' | 'none';
  /** Path parameters, always plain text: a malformed id gets the same 404 as one that names nothing. */
  params: z.ZodObject;
  /** Strict: an unknown parameter is `invalid_request` with its name as path. */
  query: z.ZodObject;
  /** Null when the route takes no body. A schema that takes `{}` also stands for a request without a body. */
  body: z.ZodType | null;
  /** Content type of a body that is not JSON of a schema, which the handler reads itself; `body` is null then. */
  rawBody?: string;
  success: readonly SuccessSpec[];
  /** The codes of this route alone; `errorsOf` adds those that follow from the rest of the declaration. */
  errors: readonly ErrorCode[];
}

/** Declares a route; the exact types of its schemas are kept for those who infer handlers from them. */
export function route<const R extends RouteSpec>(spec: R): R {
  return spec;
}

import type { ErrorCode, WireError } from '@pmail/core/errors.ts';
import { ERRORS } from '@pmail/core/errors.ts';
import type { FieldError } from '@pmail/core/result.ts';
import { z } from 'zod';

export const ERROR_CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];

/** An entry of `details.errors`. */
export const fieldError = z
  .object({
    path: z
      .string()
      .meta({ description: 'Dotted, list members in brackets: `to[3].address`. Empty for the body itself.' }),
    message: z.string(),
  })
  .meta({ id: 'FieldError' }) satisfies z.ZodType<FieldError>;

/** The body of every error answer. */
export const wireError = z
  .object({
    error: z.object({
      code: z.enum(ERROR_CODES).meta({ description: 'Stable name of the error. More may be added.' }),
      message: z.string().meta({ description: 'What is wrong.' }),
      retryable: z.boolean().meta({ description: 'Whether the same request, unchanged, may succeed later.' }),
      fix: z.string().meta({ description: 'What the caller does about it.' }),
      request_id: z.string().meta({ description: 'Also in the Request-Id header; name it when you report a fault.' }),
      details: z
        .record(z.string(), z.unknown())
        .exactOptional()
        .meta({ description: 'Facts of this case. `invalid_request` lists the refused fields in `errors`.' }),
    }),
  })
  .meta({ id: 'Error' }) satisfies z.ZodType<WireError>;

import { ERRORS, type ErrorCode, wireError } from '@pmail/core/errors.ts';
import { exampleId } from '../schemas/common.ts';
import { ERROR_CODES } from '../schemas/error.ts';
import { ERROR_DETAILS } from './error-details.ts';
import { statusTitle } from './status.ts';

const EXAMPLE = wireError('daily_cap_reached', exampleId('req'), ERROR_DETAILS.daily_cap_reached);

const INTRO = `# Errors

<!-- Generated from packages/core/src/errors.ts by packages/contracts/scripts/generate.ts. Do not edit. -->

Every error answer has the same body:

\`\`\`json
${JSON.stringify(EXAMPLE, null, 2)}
\`\`\`

- **code** is the stable name to act on. Status, message, fix and retryable never differ within a code.
- **retryable** means that the same request, unchanged, may succeed later. Repeat a send with the same
  \`Idempotency-Key\`: nothing is sent twice.
- **details** holds the facts of the case; the columns below name the members a code has. Where fields of the request
  are at fault, \`details.errors\` lists them as \`{ "path", "message" }\`, the path dotted with list members in brackets:
  \`to[3].address\`.
- New codes may be added. Treat one you do not know by its status.
`;

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function row(code: ErrorCode): string {
  const { message, fix, retryable } = ERRORS[code];
  const details = Object.keys(ERROR_DETAILS[code] ?? {}).map((name) => `\`${name}\``);
  return `| \`${code}\` | ${retryable ? 'yes' : 'no'} | ${cell(message)} | ${cell(fix)} | ${details.join(', ')} |`;
}

/** The page of errors: every code of the catalogue, by status, in the order of the catalogue. */
export function errorsPage(): string {
  const statuses = [...new Set(ERROR_CODES.map((code) => ERRORS[code].status))].sort((a, b) => a - b);
  const sections = statuses.map((status) => {
    const rows = ERROR_CODES.filter((code) => ERRORS[code].status === status).map(row);
    return [
      `## ${status} ${statusTitle(status)}`,
      '',
      '| Code | Retryable | Meaning | Fix | Details |',
      '|---|---|---|---|---|',
      ...rows,
      '',
    ].join('\n');
  });
  return `${INTRO}\n${sections.join('\n')}`;
}

/** Member of a schema's metadata that stands for the whole of what documentation says about it. */
const REPLACEMENT = 'x-replacement';

/** Metadata that replaces the generated JSON Schema of a zod schema, for one whose code hides what it takes. */
export function replaceDoc(schema: Record<string, unknown>): Record<string, unknown> {
  return { [REPLACEMENT]: schema };
}

/** The replacement that `replaceDoc` left in a generated JSON Schema, if any. */
export function replacementOf(generated: Record<string, unknown>): Record<string, unknown> | undefined {
  return generated[REPLACEMENT] as Record<string, unknown> | undefined;
}

/** Bodies of strangers: nothing beyond the bound is read, whatever they said about their length. */

export class BodyTooLong extends RangeError {
  override name = 'BodyTooLong';
}

/** @throws {BodyTooLong} when there are more than `maxBytes` */
export async function boundedBytes(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = body?.getReader();
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > maxBytes) {
      await reader.cancel();
      throw new BodyTooLong(`a body of over ${maxBytes} bytes`);
    }
    chunks.push(value);
  }
  const [only] = chunks;
  if (chunks.length === 1 && only !== undefined) return only;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** The body of an answer as text. */
export async function boundedText({ body }: Response, maxBytes: number): Promise<string> {
  return new TextDecoder().decode(await boundedBytes(body, maxBytes));
}

/** The body of an answer as text. Throws when it is longer than `maxBytes`; nothing beyond them is read. */
export async function boundedText({ body }: Response, maxBytes: number): Promise<string> {
  if (body === null) return '';
  const decoder = new TextDecoder();
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  let text = '';
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    length += value.length;
    if (length > maxBytes) {
      await reader.cancel();
      throw new RangeError(`an answer of over ${maxBytes} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** Size of a file for people: bytes up to a thousand, then kB and MB with one decimal. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Bytes that an attachment of `bytes` takes in a message: base64 in lines of 76 with CRLF, and its part's headers. */
export function encodedSize(bytes: number): number {
  return Math.ceil(bytes / 57) * 78 + 400;
}

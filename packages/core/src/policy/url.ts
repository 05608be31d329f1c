/**
 * Whether text is an absolute https URL that can stand in a header as it is: printable ASCII, no user name, and nothing
 * that only a browser's leniency turns into a host (`https:///example.com`, backslashes).
 */
export function isHttpsUrl(text: string): boolean {
  if (text.length > 2_000 || !/^https:\/\/(?![/?#])[\x21-\x7e]+$/.test(text) || /[<>"\\]/.test(text)) return false;
  try {
    const url = new URL(text);
    return url.protocol === 'https:' && url.hostname !== '' && url.username === '' && url.password === '';
  } catch {
    return false;
  }
}

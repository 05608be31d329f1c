import PostalMime, { type Attachment, type Header, type PostalMimeOptions } from 'postal-mime';
import { type LeafDecoder, leafDecoder } from './leaf-decoders.ts';
import { renderBodies, type TextParts } from './text-parts.ts';

/** Delimiter lines of one message that are read; the parser keeps a node for each part. */
const DELIMITERS_COUNT_MAX = 2_000;
/** Header lines that are read, of the message and all its parts; the parser keeps several objects for each. */
const HEADER_LINES_COUNT_MAX = 20_000;
/** Bytes of text and HTML that are read as bodies: sixteen times what a mailbox keeps of a text. */
const TEXT_BYTES_MAX = 8 * 1024 * 1024;
/** Lines of `format=flowed` text that are joined to paragraphs; longer text is left as it was sent. */
const FLOWED_LINES_COUNT_MAX = 200_000;
/** Characters of a file's name that are decoded; it is cut to a few hundred bytes afterwards. */
const NAME_CHARS_MAX = 8_000;

/** What was read, undecoded but for the names of files. */
export interface ParsedTree {
  headers: Header[];
  text?: string;
  html?: string;
  attachments: Attachment[];
}

/** What the parser costs: the lines it was handed one by one. */
export interface ParserWork {
  header_lines: number;
  delimiters: number;
  /** Lines of bodies: the last line of the message, and those that look like a delimiter until they are compared. */
  body_lines: number;
}

/** Members of the parser that its types leave out. The version is pinned, and a test compares with the parser as it is. */
interface ParserInside {
  av: Uint8Array;
  readPos: number;
  boundaries: readonly Boundary[];
  currentNode: NodeInside;
  root: { headers: Header[] };
  attachments: Attachment[];
  textMap: ReadonlyMap<object, TextParts>;
  readLine(): { bytes: Uint8Array; done: boolean };
  collectAttachment(node: NodeInside, ...others: unknown[]): void;
  renderTextContent(): void;
  buildMessage(): ParsedTree;
  parse(raw: Uint8Array): Promise<ParsedTree>;
}

interface NodeInside {
  state: 'header' | 'body' | 'finished';
  contentType: { multipart: string | false; parsed: { value: string; params: Record<string, string> } };
  contentDisposition: { parsed: { value: string; params: Record<string, string> } };
  contentDescription?: string;
  contentTransferEncoding: { encoding: string };
  contentDecoder: LeafDecoder | null;
}

interface Boundary {
  value: Uint8Array;
}

/**
 * Parses a message at a small cost for each byte, whatever its lines are. By itself the parser takes some ten
 * microseconds for a line, however short. Here it reads what makes the structure, header fields and delimiters, so many
 * of them; the lines between go to the part they belong to without it. Nor does it decode header fields or make text of
 * HTML: there are some of each that take it hours.
 *
 * @returns `cut`: whether something was left out, because there was more structure or text than is read, or a text was
 *   left as it was sent
 * @throws when the tree is too deep or the header fields are too large
 */
export async function parseBounded(
  raw: Uint8Array,
  options: PostalMimeOptions,
): Promise<{ email: ParsedTree; cut: boolean; work: ParserWork }> {
  const parser = new PostalMime(options) as unknown as ParserInside;
  const readLine = parser.readLine.bind(parser);
  const reader = new Reader(parser);
  parser.readLine = () => (reader.next() ? readLine() : reader.end());
  const collectAttachment = parser.collectAttachment.bind(parser);
  parser.collectAttachment = (node, ...others) => {
    boundNames(node);
    collectAttachment(node, ...others);
  };
  parser.renderTextContent = () => {};
  parser.buildMessage = () => ({
    headers: parser.root.headers,
    ...renderBodies([...parser.textMap.values()]),
    attachments: parser.attachments,
  });
  const email = await parser.parse(raw);
  return { email, cut: reader.cut, work: reader.work };
}

function boundNames(node: NodeInside): void {
  for (const { params } of [node.contentDisposition.parsed, node.contentType.parsed]) {
    for (const key of ['filename', 'name']) {
      const name = params[key];
      if (name !== undefined) params[key] = name.slice(0, NAME_CHARS_MAX);
    }
  }
  // Nobody reads it.
  delete node.contentDescription;
}

class Reader {
  cut = false;
  readonly work: ParserWork = { header_lines: 0, delimiters: 0, body_lines: 0 };
  readonly #parser: ParserInside;
  readonly #bodies = new WeakSet<LeafDecoder>();
  readonly #delimiters = new WeakMap<Boundary, readonly string[]>();
  #open: ReadonlySet<string> = new Set();
  #openOf: readonly Boundary[] = [];
  #textBytes = 0;
  #flowedLines = 0;
  /** Where the last line begins, which is left to the parser: with it, it ends. */
  #lastLine: number | undefined;

  constructor(parser: ParserInside) {
    this.#parser = parser;
  }

  /** Takes the lines that need no parser. @returns whether the parser shall read the line that comes then */
  next(): boolean {
    const { currentNode } = this.#parser;
    if (currentNode.state !== 'header') this.#takeBody(currentNode);
    if (this.#isDelimiter(this.#parser.readPos)) {
      this.cut ||= ++this.work.delimiters > DELIMITERS_COUNT_MAX;
    } else if (currentNode.state === 'header') {
      this.cut ||= ++this.work.header_lines > HEADER_LINES_COUNT_MAX;
    } else this.work.body_lines++;
    return !this.cut;
  }

  /** A last, empty line in place of all that is left. */
  end(): { bytes: Uint8Array; done: boolean } {
    this.#parser.readPos = this.#parser.av.length;
    return { bytes: new Uint8Array(), done: true };
  }

  #takeBody(node: NodeInside): void {
    if (node.contentDecoder !== null && !this.#bodies.has(node.contentDecoder)) {
      node.contentDecoder = this.#decoderOf(node);
      this.#bodies.add(node.contentDecoder);
    }
    const { av, readPos } = this.#parser;
    this.#lastLine ??= av.lastIndexOf(LF, av.length - 2) + 1;
    let at = readPos;
    while (at < this.#lastLine && !this.#isDelimiter(at)) {
      while (av[at] !== LF) at++;
      at++;
    }
    if (at === readPos) return;
    node.contentDecoder?.lines(av.subarray(readPos, at));
    this.#parser.readPos = at;
  }

  #decoderOf(node: NodeInside): LeafDecoder {
    const { multipart } = node.contentType;
    // What stands before the first part and behind the last one is for nobody.
    const decoder = leafDecoder(multipart === false ? node.contentTransferEncoding.encoding : null);
    const finalize = decoder.finalize.bind(decoder);
    decoder.finalize = async () => this.#bounded(node, await finalize());
    return decoder;
  }

  /** What is done with a text afterwards costs far more for each byte and line than reading it. */
  #bounded({ contentType: { parsed }, contentDisposition }: NodeInside, content: ArrayBuffer): ArrayBuffer {
    let kept = content;
    if (/^text\/(?:plain|html)$/.test(parsed.value) && contentDisposition.parsed.value !== 'attachment') {
      const left = TEXT_BYTES_MAX - this.#textBytes;
      if (content.byteLength > left) kept = content.slice(0, left);
      this.#textBytes += kept.byteLength;
    }
    if (/^flowed$/i.test(parsed.params['format'] ?? '')) this.#flowedLines += lineEnds(new Uint8Array(kept));
    const unjoined = this.#flowedLines > FLOWED_LINES_COUNT_MAX;
    if (unjoined) delete parsed.params['format'];
    this.cut ||= unjoined || kept !== content;
    return kept;
  }

  /** Whether a delimiter line may stand there: the parser compares again, white space at the end too. */
  #isDelimiter(start: number): boolean {
    const { av, boundaries } = this.#parser;
    if (boundaries.length === 0 || av[start] !== DASH || av[start + 1] !== DASH) return false;
    let end = start;
    while (end < av.length && av[end] !== LF) end++;
    const line = withoutBlanks(av.subarray(start, end));
    if (boundaries.length !== this.#openOf.length || boundaries.at(-1) !== this.#openOf.at(-1)) this.#readOpen();
    return this.#open.has(latin1(line));
  }

  #readOpen(): void {
    this.#openOf = [...this.#parser.boundaries];
    this.#open = new Set(this.#openOf.flatMap((boundary) => this.#delimitersOf(boundary)));
  }

  #delimitersOf(boundary: Boundary): readonly string[] {
    let lines = this.#delimiters.get(boundary);
    if (lines === undefined) {
      lines = [`--${latin1(withoutBlanks(boundary.value))}`, `--${latin1(boundary.value)}--`];
      this.#delimiters.set(boundary, lines);
    }
    return lines;
  }
}

const [LF, CR, SPACE, TAB, DASH] = [0x0a, 0x0d, 0x20, 0x09, 0x2d];

/** White space at the end of a delimiter line does not count (RFC 2046 section 5.1.1). */
function withoutBlanks(line: Uint8Array): Uint8Array {
  let end = line.length;
  while (end > 0 && isBlank(line[end - 1])) end--;
  return line.subarray(0, end);
}

function isBlank(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB || byte === CR;
}

function lineEnds(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if (byte === LF) count++;
  return count;
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}

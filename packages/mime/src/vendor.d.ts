/** The parts of two untyped libraries that this package uses. */

declare module 'html-to-text' {
  /** A node of the parsed document (domhandler). */
  export interface DomNode {
    type: string;
    name?: string;
    data?: string;
    attribs?: Record<string, string>;
    children?: DomNode[];
    parent?: DomNode | null;
  }

  export interface TableCell {
    colspan: number;
    rowspan: number;
    text: string;
  }

  export interface BlockTextBuilder {
    addInline(text: string, options?: { noWordTransform?: boolean }): void;
    addLiteral(text: string): void;
    addLineBreak(): void;
    pushWordTransform(transform: (word: string) => string): void;
    popWordTransform(): unknown;
    openBlock(options?: { leadingLineBreaks?: number; reservedLineLength?: number; isPre?: boolean }): void;
    closeBlock(options?: { trailingLineBreaks?: number; blockTransform?: (text: string) => string }): void;
    openList(options?: {
      maxPrefixLength?: number;
      prefixAlign?: 'left' | 'right';
      interRowLineBreaks?: number;
      leadingLineBreaks?: number;
    }): void;
    closeList(options?: { trailingLineBreaks?: number }): void;
    openListItem(options?: { prefix?: string }): void;
    closeListItem(): void;
    openTable(): void;
    openTableRow(): void;
    openTableCell(options?: { maxColumnWidth?: number }): void;
    closeTableCell(options?: { colspan?: number; rowspan?: number }): void;
    closeTableRow(): void;
    closeTable(options: {
      tableToString: (rows: TableCell[][]) => string;
      leadingLineBreaks?: number;
      trailingLineBreaks?: number;
    }): void;
  }

  export type Walk = (nodes: DomNode[] | undefined, builder: BlockTextBuilder) => void;
  export type Formatter = (
    element: DomNode,
    walk: Walk,
    builder: BlockTextBuilder,
    options: Record<string, unknown>,
  ) => void;

  export interface Options {
    wordwrap?: number | false;
    whitespaceCharacters?: string;
    limits?: { maxDepth?: number; maxInputLength?: number; ellipsis?: string };
    formatters?: Record<string, Formatter>;
    selectors?: { selector: string; format?: string; options?: Record<string, unknown> }[];
  }

  export function compile(options?: Options): (html: string) => string;
}

declare module 'sanitize-html' {
  export interface Tag {
    tagName: string;
    attribs: Record<string, string>;
    text?: string;
  }

  export interface Options {
    allowedTags?: string[];
    allowedAttributes?: Record<string, string[]>;
    allowedSchemes?: string[];
    allowedSchemesByTag?: Record<string, string[]>;
    allowedSchemesAppliedToAttributes?: string[];
    allowProtocolRelative?: boolean;
    allowedEmptyAttributes?: string[];
    disallowedTagsMode?: 'discard' | 'completelyDiscard' | 'escape' | 'recursiveEscape';
    nonTextTags?: string[];
    selfClosing?: string[];
    nestingLimit?: number;
    parseStyleAttributes?: boolean;
    transformTags?: Record<string, string | ((tagName: string, attribs: Record<string, string>) => Tag)>;
  }

  export default function sanitizeHtml(html: string, options?: Options): string;
}

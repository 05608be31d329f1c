// The only globals of the web platform that the rules may use. Everything else (fetch, timers, streams, node) stays
// unknown to the compiler in this package, so an impure rule does not compile.

declare class TextEncoder {
  encode(input?: string): Uint8Array;
}
declare class TextDecoder {
  constructor(label?: string, options?: { fatal: boolean; ignoreBOM: boolean });
  decode(input?: ArrayBufferView | ArrayBuffer, options?: { stream?: boolean }): string;
}
declare function btoa(data: string): string;
declare function atob(data: string): string;
declare class URL {
  constructor(url: string, base?: string);
  readonly hostname: string;
  readonly host: string;
  readonly protocol: string;
  readonly pathname: string;
  readonly search: string;
  readonly hash: string;
  readonly port: string;
  readonly username: string;
  readonly password: string;
  readonly href: string;
}
interface CryptoKey {
  readonly type: string;
}
interface SubtleCrypto {
  digest(algorithm: string, data: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer>;
  importKey(
    format: 'raw' | 'spki',
    data: Uint8Array<ArrayBuffer>,
    algorithm: { name: string; hash?: string },
    extractable: boolean,
    usages: string[],
  ): Promise<CryptoKey>;
  sign(algorithm: string, key: CryptoKey, data: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer>;
  verify(
    algorithm: string,
    key: CryptoKey,
    signature: Uint8Array<ArrayBuffer>,
    data: Uint8Array<ArrayBuffer>,
  ): Promise<boolean>;
  encrypt(
    algorithm: { name: string; iv: Uint8Array<ArrayBuffer>; additionalData?: Uint8Array<ArrayBuffer> },
    key: CryptoKey,
    data: Uint8Array<ArrayBuffer>,
  ): Promise<ArrayBuffer>;
  decrypt(
    algorithm: { name: string; iv: Uint8Array<ArrayBuffer>; additionalData?: Uint8Array<ArrayBuffer> },
    key: CryptoKey,
    data: Uint8Array<ArrayBuffer>,
  ): Promise<ArrayBuffer>;
}
declare const crypto: { readonly subtle: SubtleCrypto };

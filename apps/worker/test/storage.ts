let kept = false;

/** For a file whose tests share one deployment: storage is wiped before the first of them and not between them. */
export function keepStorage(): void {
  kept = true;
}

export function keepsStorage(): boolean {
  return kept;
}

/** How far a rebuild of the ledger is; its counts since it began. */
export interface RebuildProgress {
  complete: boolean;
  /** Sent copies looked at. */
  copies: number;
  /** Ledger rows made again for messages that are here. */
  keys: number;
  /** Sends the mailbox had lost and shows again, as `uncertain`. */
  messages: number;
}

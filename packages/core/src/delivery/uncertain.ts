/** What to do about an uncertain send. Nothing acts on one by itself, so its event and the message say it. */
export const UNCERTAIN_FIX =
  "Look for the message in the recipient's mailbox or wait for a delivery event; then call resolve with outcome sent or not_sent.";

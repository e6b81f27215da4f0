/*
 * A conversation that was summarized comes back as an item that its client does not read. Nothing in it is a secret to whoever had the
 * conversation, and whoever writes one has written no more than a message of the user.
 */

export function sealedSummary(summary: string): string {
  return Buffer.from(summary).toString("base64url");
}

export function summaryFrom(sealed: string): string {
  return `[Summary of the conversation so far]\n${Buffer.from(sealed, "base64url").toString("utf8")}`;
}

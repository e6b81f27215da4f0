import { refuse } from "#runtime/failure/failure.ts";

/** A JSON text as one line. Its line ends stand between its tokens, never inside of a string: as blanks they mean the same. */
export function lineOfJson(text: string): string {
  const isLine = !text.includes("\n") && !text.includes("\r"); // mostly, and quick to see of megabytes
  return `${isLine ? text : text.replace(/[\r\n]+/g, " ")}\n`;
}

/** Throws `resource_exhausted` for a call whose line is longer than its process takes. */
export function requireFit(line: string, maxLineBytes: number): void {
  const bytes = Buffer.byteLength(line);
  if (bytes <= maxLineBytes) return;
  const text = `the arguments of the call have ${bytes} bytes, over the limit of ${maxLineBytes}`;
  refuse("resource_exhausted", text, { reason: "MESSAGE_TOO_LARGE" });
}

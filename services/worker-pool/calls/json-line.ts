/** A JSON text as one line. Its line ends stand between its tokens, never inside of a string: as blanks they mean the same. */
export function lineOfJson(text: string): string {
  const isLine = !text.includes("\n") && !text.includes("\r"); // mostly, and quick to see of megabytes
  return `${isLine ? text : text.replace(/[\r\n]+/g, " ")}\n`;
}

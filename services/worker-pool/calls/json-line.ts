/** A JSON text as one line. Its line ends stand between its tokens, never inside of a string: as blanks they mean the same. */
export function lineOfJson(text: string): string {
  return `${text.replace(/[\r\n]+/g, " ")}\n`;
}

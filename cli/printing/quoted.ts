/** A text as one word of a shell's command, whatever it holds: people paste what is printed, and others may have written the text. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

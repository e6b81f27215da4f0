import { randomBytes } from "node:crypto";
import { clearLine, clearScreenDown, cursorTo } from "node:readline";
import { Writable } from "node:stream";
import picocolors from "picocolors";
import { visibleJson, visibleText } from "#runtime/content/visible/visible.ts";

/** Stands for the escape of our own colours until text is written. Nobody can guess it, so that foreign text has no colours. */
const escapeMark = `\ufdd0${randomBytes(8).toString("base64url")}`;

const painted = picocolors.createColors(process.stdout.isTTY === true && picocolors.isColorSupported);

/** Colours only where somebody looks. */
export const colors = {
  bold: marked(painted.bold),
  cyan: marked(painted.cyan),
  dim: marked(painted.dim),
  green: marked(painted.green),
  red: marked(painted.red),
  yellow: marked(painted.yellow),
};

function marked(paint: (text: string) => string): (text: string) => string {
  const [open = "", close = ""] = paint("\0").split("\0");
  return (text) => `${open.replace("\x1b", escapeMark)}${text}${close.replace("\x1b", escapeMark)}`;
}

/**
 * The one place where the command writes: whatever text came from a model, a tool, a person or a server, a terminal obeys nothing
 * but our own colours.
 */
function write(stream: NodeJS.WriteStream, text: string): void {
  stream.write(visibleText(text).replaceAll(escapeMark, "\x1b"));
}

/** For a command that has something to close: that nobody reads on, or that a disk is full, ends it no sooner. */
export function goOnUnread(): void {
  process.stdout.removeAllListeners("error").on("error", () => {});
}

/** Text as it comes, without an end of line. */
export function printText(text: string): void {
  write(process.stdout, text);
}

export function printLine(text = ""): void {
  write(process.stdout, `${text}\n`);
}

export function printLines(lines: readonly string[]): void {
  for (const line of lines) printLine(line);
}

/** One line of JSON. */
export function printJson(value: unknown): void {
  process.stdout.write(`${visibleJson(JSON.stringify(value))}\n`);
}

/** Where a result goes as the bytes that it is; a terminal gets the text of it. */
export function resultOutput(): Writable {
  if (!process.stdout.isTTY) return process.stdout;
  const decoder = new TextDecoder();
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      write(process.stdout, decoder.decode(chunk, { stream: true }));
      done();
    },
  });
}

/** Takes the place of the whole screen, as far as that has room. */
export function printScreen(lines: readonly string[]): void {
  const fitting = lines.slice(0, Math.max(1, (process.stdout.rows || lines.length + 1) - 1));
  cursorTo(process.stdout, 0, 0);
  for (const line of fitting) {
    write(process.stdout, line);
    clearLine(process.stdout, 1);
    process.stdout.write("\n");
  }
  clearScreenDown(process.stdout);
}

/** Takes the place of what was printed as progress before. */
export function printProgress(text: string): void {
  process.stderr.write(`${visibleText(text)}\r`);
}

/** Notes for people, kept apart from the result. */
export function printNote(text: string): void {
  printError(colors.dim(text));
}

/** Warnings and faults. */
export function printError(text: string): void {
  write(process.stderr, `${text}\n`);
}

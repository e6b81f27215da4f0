import { type DescEnum, type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import type { ToolProgress } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { enumWord } from "#runtime/schema/enum-word.ts";
import { colors, printJson, printLines, printNote } from "./terminal.ts";

export { colors, printError, printJson, printLine, printLines, printNote } from "./terminal.ts";

/** One line of JSON in the contract's own form. */
export function printMessage<D extends DescMessage>(schema: D, message: MessageShape<D>): void {
  printJson(toJson(schema, message) as object);
}

/** Columns as wide as they need be, as long as the terminal has room for them: then the widest are cut, but never the first one. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  printLines(linesOfTable(head, rows));
  if (rows.length === 0) printNote("there is none yet");
}

export function linesOfTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const needed = head.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)));
  const widths = fittingWidths(needed, process.stdout.columns || undefined); // 0 where a terminal has no size yet
  const cut = (text: string, width: number) => (text.length > width ? `${text.slice(0, width - 1)}…` : text);
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cut(cell, widths[column] ?? 0).padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd();
  return [colors.dim(line(head)), ...rows.map(line)];
}

const GAP = "  ";

/**
 * The widths of columns that need so much, in a terminal that has so much. The first one, which names what a row is of, is never cut:
 * other commands are given it. Of the others the widest give way first, each to the same width.
 */
export function fittingWidths([first = 0, ...others]: readonly number[], columns = Number.POSITIVE_INFINITY): number[] {
  let room = columns - first - GAP.length * others.length;
  let most = Number.POSITIVE_INFINITY;
  for (const [index, width] of others.toSorted((a, b) => a - b).entries()) {
    const share = Math.max(4, Math.floor(room / (others.length - index)));
    if (width > share) {
      most = share;
      break;
    }
    room -= width;
  }
  return [first, ...others.map((width) => Math.min(width, most))];
}

/** Text that fits into a table's cell. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** Its beginning, on one line. */
export function shorten(text: string): string {
  const flat = oneLine(text);
  return flat.length > 160 ? `${flat.slice(0, 159)}…` : flat;
}

/** `3/7 copied` */
export function progressText({ progress, total, message }: ToolProgress): string {
  return `${total > 0 ? `${progress}/${total}` : progress} ${message}`.trim();
}

/** A value of the contract's enumerations as one word: RUN_END_REASON_MAX_TURNS is `max_turns`; nothing for what is not set. */
export function codeOfValue(schema: DescEnum, value: number): string {
  return value === 0 ? "" : enumWord(schema, value);
}

/** A value of the contract's enumerations in words: RUN_STATE_REQUIRES_ACTION is `requires action`. */
export function nameOfValue(schema: DescEnum, value: number): string {
  return enumWord(schema, value).replaceAll("_", " ");
}

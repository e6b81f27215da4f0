import { type DescEnum, type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import type { ToolProgress } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { enumWord } from "#runtime/schema/enum-word.ts";
import { colors, printJson, printLine } from "./terminal.ts";

export { colors, printError, printJson, printLine, printNote } from "./terminal.ts";

/** One line of JSON in the contract's own form. */
export function printMessage<D extends DescMessage>(schema: D, message: MessageShape<D>): void {
  printJson(toJson(schema, message) as object);
}

/** Columns as wide as they need be; the last one is cut to the terminal. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)));
  const line = (cells: readonly string[]) =>
    cells.map((cell, column) => (column === cells.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))).join("  ");
  const width = process.stdout.columns;
  const cut = (text: string) => (width !== undefined && text.length > width ? `${text.slice(0, width - 1)}…` : text);
  printLine(colors.dim(cut(line(head))));
  for (const row of rows) printLine(cut(line(row)));
}

/** Text that fits into a table's cell. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
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

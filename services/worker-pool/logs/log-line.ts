import { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { fieldsOf, jsonFrom } from "#runtime/schema/json-object.ts";

/** One line of a worker's log, with the labels that tell whose it is; a label is empty where the line belongs to none. */
export interface LogLine {
  timeMs: number;
  source: string;
  function: string;
  callId: string;
  traceId: string;
  /** Whose call wrote it. */
  principal: string;
  level: LogLevel;
  message: string;
  /** JSON text; empty for none. */
  fieldsJson: string;
}

/** A line of a worker's stderr as it was written, before it is known whose call it belongs to. */
export interface WrittenLine extends Pick<LogLine, "timeMs" | "level" | "message" | "fieldsJson"> {
  /** The protocol's id of the call. */
  id?: number;
}

/** By the words that the SDK writes. */
const LEVELS: ReadonlyMap<unknown, LogLevel> = new Map([
  ["trace", LogLevel.TRACE],
  ["debug", LogLevel.DEBUG],
  ["info", LogLevel.INFO],
  ["warn", LogLevel.WARN],
  ["error", LogLevel.ERROR],
]);
const SDK_LINE = '{"toolbus":"log"';

export const isLogLine = (text: string) => text.startsWith(SDK_LINE);

/** The SDK writes JSON lines; everything else that reaches stderr is a message of its own. */
export function writtenLineFromText(text: string, nowMs: number): WrittenLine {
  const plain: WrittenLine = { timeMs: nowMs, level: LogLevel.INFO, message: text, fieldsJson: "" };
  if (!isLogLine(text)) return plain;
  const entry = fieldsOf(jsonFrom(text));
  if (typeof entry.message !== "string") return plain; // a subprocess may have written into the middle of the line
  return {
    timeMs: timeMsFromSeconds(entry.time) ?? nowMs,
    level: LEVELS.get(entry.level) ?? LogLevel.INFO,
    message: entry.message,
    fieldsJson: entry.fields === undefined ? "" : JSON.stringify(entry.fields),
    ...(typeof entry.id === "number" && { id: entry.id }),
  };
}

/** The end of the year 9999: what is later fits no timestamp of the contract. */
const LAST_TIME_MS = 253_402_300_799_000;

function timeMsFromSeconds(seconds: unknown): number | undefined {
  if (typeof seconds !== "number") return undefined;
  const timeMs = Math.round(seconds * 1_000);
  return timeMs >= 0 && timeMs <= LAST_TIME_MS ? timeMs : undefined;
}

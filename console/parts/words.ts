import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ContentPart } from "#gen/toolbus/content/v1/content_pb.ts";
import { nameFrom } from "../../sdk/typescript/client/error.ts";

/** A value of an enum of the contract, as one says it: `in progress`. */
export function wordFrom(values: Readonly<Record<string, number>>, value: number): string {
  return nameFrom(values, value).toLowerCase().replaceAll("_", " ");
}

export function msOf(time: Timestamp | undefined): number | undefined {
  return time && timestampMs(time);
}

/** As `12:03:45`, with the day in front of it unless it is today's. */
export function clockOf(ms: number | undefined): string {
  if (ms === undefined) return "";
  const date = new Date(ms);
  // By hand: Intl takes longer over a list's times than all else that draws it.
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => `${part}`.padStart(2, "0"))
    .join(":");
  return dayOf(ms) === dayOf(Date.now()) ? time : `${date.toLocaleDateString()} ${time}`;
}

const dayOf = (ms: number) => new Date(ms).setHours(0, 0, 0, 0);

/** As `340 ms`, `2.4 s`, `3 min 10 s`, `2 h 5 min`; what has not begun by this machine's clock took no time yet. */
export function durationOf(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function textOf(content: readonly ContentPart[]): string {
  return content
    .map(({ part }) => {
      if (part.case === "text") return part.value;
      return part.case === "file" ? `[file ${part.value.filename || part.value.mediaType}]` : "";
    })
    .join("\n");
}

/** As `1 turn`, `3 turns`. */
export function counted(count: number, what: string): string {
  return `${count.toLocaleString()} ${what}${count === 1 ? "" : "s"}`;
}

// What a conformance runner and a subject under test say to each other, in JSON over the bus: docs/connect-over-nats/cases/README.md.

import { createHash } from "node:crypto";

/** A value of `google.protobuf.BytesValue`: hex, or so many bytes of the pattern 0, 1, … 250, 0, … */
export type Value = { value: string } | { value_of: number };

/** A text, or so many letters "a". */
export type MetadataValue = string | { letters: number };

export interface CallCommand {
  readonly id: string;
  /** Where the outcome is published. */
  readonly events: string;
  readonly service: string;
  readonly method: string;
  readonly requests: readonly Value[];
  /** More requests may come. */
  readonly open: boolean;
  readonly metadata: Readonly<Record<string, MetadataValue>>;
  readonly timeout_ms?: number;
  /** How many answers are read before `read` asks for all; absent: all. */
  readonly reads?: number;
}

export type Command =
  | { do: "serve"; service: string; patience_ms?: number }
  | { do: "stop"; service: string }
  | ({ do: "call" } & CallCommand)
  | { do: "request"; id: string; body: Value }
  | { do: "end" | "read" | "abort"; id: string };

export interface ReportedError {
  readonly code: string;
  readonly message: string;
  readonly delivery: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  /** The values of the details, in hex. */
  readonly details: readonly string[];
}

export interface Outcome {
  readonly messages: readonly string[];
  readonly error: ReportedError | null;
  readonly header: Readonly<Record<string, string>>;
  readonly trailer: Readonly<Record<string, string>>;
}

const patternLength = 251;
const longestHex = 1_024;

export function bytesOf(value: Value): Uint8Array<ArrayBuffer> {
  if ("value" in value) return new Uint8Array(Buffer.from(value.value, "hex"));
  return patterned(value.value_of);
}

export function metadataOf(entries: CallCommand["metadata"]): Headers {
  const metadata = new Headers();
  for (const [key, value] of Object.entries(entries)) {
    metadata.append(key, typeof value === "string" ? value : "a".repeat(value.letters));
  }
  return metadata;
}

export function patterned(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  const known = Math.min(size, patternLength);
  for (let index = 0; index < known; index += 1) bytes[index] = index;
  for (let done = known; done < size; done *= 2) bytes.copyWithin(done, 0, done); // whole patterns, twice as many each time
  return bytes;
}

/** Values of over 1 KiB are given by their digest. */
export function textOf(bytes: Uint8Array): string {
  if (bytes.length <= longestHex) return Buffer.from(bytes).toString("hex");
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

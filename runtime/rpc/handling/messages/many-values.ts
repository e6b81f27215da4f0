import type { DescMessage } from "@bufbuild/protobuf";
import { HEAVY_VALUES, ownTurn, type Taker } from "../../../collections/turns/own-turn.ts";
import { connectError } from "../../../failure/connect.ts";
import { hasMoreValues, maxValues } from "../../../schema/json/json-size.ts";
import { hasMoreFields, MistaggedField } from "./field-count.ts";

/*
 * Two bytes of a message may become an object that takes a hundred, and its rules a few µs: 2 MB of them kept a process busy for more
 * than a minute, and 40 MB may take all of its memory. So its values are counted before it is parsed, which costs a hundredth of that.
 */

interface Form {
  readonly desc: DescMessage;
  readonly isBinary: boolean;
}

/**
 * Resolves when a message may be parsed: at once, or in a turn of its own where it has many fields, elements and entries. Refuses one that
 * has too many. What is no message is left to whoever parses it, and says why.
 */
export async function turnToParse(bytes: Uint8Array, form: Form & Taker): Promise<void> {
  if (isShort(bytes) || !hasMore(bytes, form, HEAVY_VALUES)) return;
  requireFewValues(bytes, form);
  await ownTurn(form);
}

/** Whether it is parsed at once, whatever it says. */
export function isShort({ length }: Uint8Array): boolean {
  return length <= HEAVY_VALUES;
}

export function requireFewValues(bytes: Uint8Array, form: Form): void {
  if (!hasMore(bytes, form, maxValues)) return;
  const text = `the message has more than ${maxValues} values: send it in parts`;
  throw connectError("resource_exhausted", text, { reason: "MESSAGE_TOO_LARGE" });
}

function hasMore(bytes: Uint8Array, { desc, isBinary }: Form, most: number): boolean {
  if (!isBinary) return hasMoreValues(asciiOf(bytes), most, most); // an element may become a message
  try {
    return hasMoreFields(bytes, desc, most);
  } catch (error) {
    if (!(error instanceof MistaggedField)) return false;
    throw connectError("invalid_argument", error.message, { reason: "REQUEST_MALFORMED", cause: error });
  }
}

/** JSON for readers that look at ASCII alone: other letters come out wrong. */
export function asciiOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString("latin1");
}

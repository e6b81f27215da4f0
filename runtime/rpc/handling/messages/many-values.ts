import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { HEAVY_VALUES, ownTurn } from "../../../collections/own-turn.ts";
import { connectError } from "../../../failure/connect.ts";
import { hasMoreValues, maxValues } from "../../../schema/json-size.ts";

/*
 * Two bytes of a message may become an object that takes a hundred, and its rules a few µs: 2 MB of them kept a process busy for more
 * than a minute, and 40 MB may take all of its memory. So its values are counted before it is parsed, which costs a hundredth of that.
 */

interface Sent {
  readonly desc: DescMessage;
  readonly isBinary: boolean;
  /** Who has turns of his own. */
  readonly sender: string;
}

/**
 * Resolves when a message may be parsed: at once, or in a turn of its own where it has many fields, elements and entries. Refuses one that
 * has too many. What is no message is left to whoever parses it, and says why.
 */
export async function turnToParse(bytes: Uint8Array, { desc, isBinary, sender }: Sent): Promise<void> {
  if (isShort(bytes)) return;
  const text = isBinary ? undefined : textOf(bytes);
  const hasMore = (most: number) => (text === undefined ? hasMoreFields(bytes, desc, most) : hasMoreValues(text, most));
  if (!hasMore(HEAVY_VALUES)) return;
  if (hasMore(maxValues)) throw tooManyValues();
  await ownTurn(sender);
}

/** Whether it is parsed at once, whatever it says. */
export function isShort({ length }: Uint8Array): boolean {
  return length <= HEAVY_VALUES;
}

function tooManyValues(): Error {
  const text = `the message has more than ${maxValues} values: send it in parts`;
  return connectError("resource_exhausted", text, { reason: "MESSAGE_TOO_LARGE" });
}

/** Letters beyond ASCII do not count. */
function textOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString("latin1");
}

/** As deep as the library parses. */
const MOST_DEEP = 100;

function hasMoreFields(bytes: Uint8Array, desc: DescMessage, most: number): boolean {
  const reader = new BinaryReader(bytes);
  let left = most;
  try {
    return !fits(bytes.length, insidesOf(desc), 1);
  } catch {
    return false;
  }

  function fits(end: number, insides: Insides, depth: number): boolean {
    while (left >= 0 && reader.pos < end) {
      left -= 1;
      const [number, wireType] = reader.tag();
      const inside = wireType === WireType.LengthDelimited && depth <= MOST_DEEP ? insides.get(number) : undefined;
      if (!inside) {
        reader.skip(wireType, number);
        continue;
      }
      const length = reader.uint32();
      if (inside === "packed") {
        left -= length;
        reader.pos += length;
      } else fits(reader.pos + length, inside(), depth + 1);
    }
    return left >= 0;
  }
}

/** By number, the fields that hold further values. */
type Insides = ReadonlyMap<number, "packed" | (() => Insides)>;

const known = new WeakMap<DescMessage, Insides>();

function insidesOf(desc: DescMessage): Insides {
  const insides = known.get(desc) ?? new Map(desc.fields.flatMap(insideOf));
  known.set(desc, insides);
  return insides;
}

function insideOf(field: DescField): [number, "packed" | (() => Insides)][] {
  const { number, message } = field;
  const ofMessage = message && (() => insidesOf(message));
  if (field.fieldKind === "map") {
    const entry: Insides = new Map(ofMessage ? [[2, ofMessage]] : []);
    return [[number, () => entry]];
  }
  if (field.fieldKind === "list" && field.packed) return [[number, "packed"]];
  return ofMessage ? [[number, ofMessage]] : [];
}

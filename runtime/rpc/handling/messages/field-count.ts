import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { getOrInsertComputed } from "../../../collections/get-or-insert-computed.ts";

/*
 * field-count-1  Every field that the library would read is counted: this goes through the bytes as it does.
 * field-count-2  The library reads a known field by its type, whatever its tag says. One whose tag says another form would lead the two
 *     apart, and is refused.
 * field-count-3  Where this ends with an error, the library ends as well, at the same byte.
 */

/** field-count-2 */
export class MistaggedField extends Error {}

/** Deeper than the library parses, which counts no entries of maps. */
const MOST_DEEP = 250;

/** Whether a message has more fields, elements and entries than that, its own and those of what is in it. */
export function hasMoreFields(bytes: Uint8Array, desc: DescMessage, most: number): boolean {
  const reader = new BinaryReader(bytes);
  let left = most;
  count(bytes.length, fieldsOf(desc), 1);
  return left < 0;

  function count(end: number, fields: Fields, depth: number): void {
    if (depth > MOST_DEEP) throw new RangeError("nested too deep");
    while (left >= 0 && reader.pos < end) {
      left -= 1;
      const [number, wireType] = reader.tag();
      const field = fields.get(number);
      if (field) countKnown(field, wireType, depth);
      else if (wireType === WireType.StartGroup) countGroup(depth + 1);
      else reader.skip(wireType, number);
    }
  }

  function countKnown({ name, wireType: own, isPackable, fields }: Field, wireType: WireType, depth: number): void {
    const isPacked = isPackable && wireType === WireType.LengthDelimited;
    if (wireType !== own && !isPacked) throw new MistaggedField(`the tag of ${name} is that of another type`);
    if (isPacked) countPacked(reader.uint32() + reader.pos, own);
    else if (fields) count(reader.uint32() + reader.pos, fields(), depth + 1);
    else reader.skip(wireType);
  }

  /** The last element may reach beyond the end. */
  function countPacked(end: number, wireType: WireType): void {
    for (; left >= 0 && reader.pos < end; left -= 1) reader.skip(wireType);
  }

  function countGroup(depth: number): void {
    if (depth > MOST_DEEP) throw new RangeError("nested too deep");
    for (let [number, wireType] = reader.tag(); wireType !== WireType.EndGroup; [number, wireType] = reader.tag()) {
      left -= 1;
      if (left < 0) return;
      if (wireType === WireType.StartGroup) countGroup(depth + 1);
      else reader.skip(wireType, number);
    }
  }
}

interface Field {
  readonly name: string;
  /** Of one element, in a list. */
  readonly wireType: WireType;
  readonly isPackable: boolean;
  /** Of what is in it. */
  readonly fields: (() => Fields) | undefined;
}

type Fields = ReadonlyMap<number, Field>;

const known = new WeakMap<DescMessage, Fields>();

function fieldsOf(desc: DescMessage): Fields {
  return getOrInsertComputed(known, desc, () => new Map(desc.fields.map((field) => [field.number, fieldFrom(field)])));
}

function fieldFrom(field: DescField): Field {
  const { message, scalar, fieldKind } = field;
  const name = String(field);
  const wireType = message ? WireType.LengthDelimited : wireTypeOf(scalar);
  const isPackable = fieldKind === "list" && wireType !== WireType.LengthDelimited;
  const own = { name, wireType, isPackable, fields: message && (() => fieldsOf(message)) };
  if (fieldKind !== "map") return own;
  const key = { name, wireType: wireTypeOf(field.mapKey), isPackable, fields: undefined };
  const entry: Fields = new Map([
    [1, key],
    [2, own],
  ]);
  return { name, wireType: WireType.LengthDelimited, isPackable, fields: () => entry };
}

/** Of a scalar; an enum is none. */
function wireTypeOf(scalar: ScalarType | undefined): WireType {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}

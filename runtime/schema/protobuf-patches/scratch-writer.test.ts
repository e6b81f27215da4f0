import { readFileSync } from "node:fs";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, test } from "vitest";
import { saveOnWriters } from "./scratch-writer.ts";

const bufferOf = (writer: BinaryWriter) => (writer as unknown as { buffer: Uint8Array }).buffer;
const text = (length: number) => "ü".repeat(length);

/** A message with numbers and texts of a size, which is written in many steps. */
function structOf(length: number) {
  const value = { kind: { case: "stringValue" as const, value: text(length) } };
  const number = { kind: { case: "numberValue" as const, value: length + 0.5 } };
  return create(StructSchema, { fields: { value, number, again: value } });
}

describe("writers of messages", () => {
  beforeAll(() => {
    saveOnWriters();
    new BinaryWriter().uint32(1).finish();
  });

  test("begin on the same buffer, one after the other, and give copies of it", () => {
    const first = new BinaryWriter().string("first");
    const used = bufferOf(first);
    const bytes = first.finish();
    const second = new BinaryWriter().string("other");
    expect(bufferOf(second)).toBe(used);
    second.finish();
    expect(new BinaryReader(bytes).string()).toBe("first");
    expect(bytes.buffer.byteLength).toBe(bytes.length);
  });

  test("do not share it while both are at work, nor lose it to one that never ends", () => {
    const [one, other] = [new BinaryWriter().string("one"), new BinaryWriter().string("other")];
    expect(bufferOf(other)).not.toBe(bufferOf(one));
    expect(new BinaryReader(other.finish()).string()).toBe("other");
    expect(new BinaryReader(one.finish()).string()).toBe("one");
    new BinaryWriter().string("never ends");
    new BinaryWriter().string("begins as before").finish();
    expect(bufferOf(new BinaryWriter().string("begins on one again")).length).toBe(16 * 1_024);
  });

  test("write messages of any size, and after a larger one a smaller", () => {
    for (const length of [0, 1, 40, 130, 5_000, 2_700, 16_384, 100_000, 3]) {
      const bytes = toBinary(StructSchema, structOf(length));
      expect(fromBinary(StructSchema, bytes), `${length}`).toEqual(structOf(length));
    }
  });

  test("may be used again", () => {
    const writer = new BinaryWriter().double(1.5);
    expect(new BinaryReader(writer.finish()).double()).toBe(1.5);
    const holder = new BinaryWriter().uint32(1); // has the buffer meanwhile
    writer.raw(new Uint8Array(9_000)).double(2.5);
    const reader = new BinaryReader(writer.finish());
    reader.pos = 9_000;
    expect(reader.double()).toBe(2.5);
    expect([...holder.finish()]).toEqual([1]);
  });

  test("are those of the release that this was made for", () => {
    const source = readFileSync(new URL("scratch-writer.ts", import.meta.url), "utf8");
    const [, version] = /Made for @bufbuild\/protobuf (\S+)\.$/m.exec(source) ?? [];
    const manifest = new URL("../../../node_modules/@bufbuild/protobuf/package.json", import.meta.url);
    expect(JSON.parse(readFileSync(manifest, "utf8")).version).toBe(version);
  });
});

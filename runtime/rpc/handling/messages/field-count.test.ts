// What is counted of a message before it is parsed, held against what the library makes of it.

import { create, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  isReflectList,
  isReflectMap,
  isReflectMessage,
  type ReflectMessage,
  reflect,
} from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema, StructSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { CreateRunRequestSchema, ListRunsRequestSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { hasMoreFields, MistaggedField } from "./field-count.ts";

const [varint, delimited, startGroup, endGroup] = [0, 2, 3, 4];
const tag = (number: number, wireType: number) => number * 8 + wireType;
const length = (bytes: number) => [(bytes & 0x7f) | 0x80, ((bytes >> 7) & 0x7f) | 0x80, bytes >> 14];
const inside = (number: number, ...bytes: number[]) => [tag(number, delimited), ...length(bytes.length), ...bytes];
const many = (count: number, ...bytes: number[]) => Array.from({ length: count }, () => bytes).flat();

/** Fields, elements and entries of a message, as it was parsed. */
function valuesOf(message: ReflectMessage): number {
  let values = message.getUnknown()?.length ?? 0;
  for (const field of message.fields.filter((one) => message.isSet(one))) {
    const value: unknown = message.get(field);
    const inside = isReflectList(value) || isReflectMap(value) ? [...value.values()] : [value];
    for (const one of inside) values += isReflectMessage(one) ? 1 + valuesOf(one) : 1;
  }
  return values;
}

const request = toBinary(
  CreateRunRequestSchema,
  create(CreateRunRequestSchema, {
    agent: "a",
    input: [{ item: { case: "message", value: { role: 1, content: [{ part: { case: "text", value: "hello" } }] } } }],
    options: { limits: { maxTurns: 3, timeout: { seconds: 1n, nanos: 5 } }, metadata: { a: "b" }, mode: 1 },
  }),
);
const file = toBinary(
  FileDescriptorProtoSchema,
  create(FileDescriptorProtoSchema, {
    name: "a.proto",
    publicDependency: [1, 2, 300],
    messageType: [{ name: "M", field: [{ name: "f", number: 1 }], options: { deprecated: true } }],
    sourceCodeInfo: { location: [{ path: [1, 2, 3], span: [4, 5, 600] }] },
  }),
);
const struct = toBinary(
  StructSchema,
  create(StructSchema, { fields: { a: { kind: { case: "listValue", value: { values: [{}, {}] } } } } }),
);

const peers: [string, DescMessage, Uint8Array][] = [
  ["a request", CreateRunRequestSchema, request],
  ["packed numbers", FileDescriptorProtoSchema, file],
  ["maps of messages", StructSchema, struct],
];

test.each(peers)("SEC-5 of %s no value is missed, whatever its bytes are changed to", (_, desc, whole) => {
  let state = 1;
  const random = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return (state >> 8) % below;
  };
  let parsedCount = 0;
  for (let round = 0; round < 20_000; round += 1) {
    const bytes = Uint8Array.from([...whole, ...whole.subarray(random(whole.length))]);
    for (let change = random(4); change >= 0; change -= 1) bytes[random(bytes.length)] = random(256);
    let values = 0;
    try {
      values = valuesOf(reflect(desc, fromBinary(desc, bytes)));
    } catch {
      continue; // no message
    }
    parsedCount += 1;
    let counted = true;
    try {
      counted = values === 0 || hasMoreFields(bytes, desc, values - 1);
    } catch (error) {
      if (!(error instanceof MistaggedField)) throw error;
    }
    expect(counted, `${Buffer.from(bytes).toString("hex")} holds ${values} values`).toBe(true);
  }
  expect(parsedCount).toBeGreaterThan(1_000);
});

test.each([
  [
    "a number whose tag says that so many bytes follow",
    inside(4, tag(4, delimited), ...length(300), ...many(150, 0x1a, 0)),
  ],
  ["a message whose tag says that it is a group", [tag(3, startGroup), ...many(100, 0x0a, 0), tag(3, endGroup)]],
  ["a text whose tag says that it is a number", [tag(1, varint), 0]],
])("SEC-5 %s is refused", (_, bytes) => {
  expect(() => hasMoreFields(Uint8Array.from(bytes), CreateRunRequestSchema, 10)).toThrow(MistaggedField);
});

test.each([
  ["groups of fields that are not known", [tag(15, startGroup), ...many(100, tag(14, varint), 0), tag(15, endGroup)]],
  ["messages in messages", inside(3, ...many(100, tag(1, delimited), 0))],
])("SEC-5 %s are counted", (_, bytes) => {
  const sent = Uint8Array.from(bytes);
  const has = (most: number) => hasMoreFields(sent, CreateRunRequestSchema, most);
  expect([has(99), has(102)]).toEqual([true, false]);
});

test("SEC-5 behind packed numbers it goes on where the library does, and counts those whose length is a lie", () => {
  const has = (bytes: number[], most: number) => hasMoreFields(Uint8Array.from(bytes), ListRunsRequestSchema, most);
  const states = tag(2, delimited);
  const beyond = [states, 1, 0x80, 0x00, ...many(100, tag(14, varint), 0)];
  expect(fromBinary(ListRunsRequestSchema, Uint8Array.from(beyond)).$unknown).toHaveLength(100);
  expect([has(beyond, 99), has(beyond, 102)]).toEqual([true, false]);
  expect(has([states, 0xff, 0xff, 0xff, 0xff, 0x07, ...many(100, 1)], 99)).toBe(true);
});

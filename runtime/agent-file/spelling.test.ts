import { create, createFileRegistry } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  DescriptorProtoSchema,
  EnumDescriptorProtoSchema,
  EnumValueDescriptorProtoSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  file_google_protobuf_duration,
} from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { contractJson, namesOf, type Spelling } from "./spelling.ts";

const { ENUM, MESSAGE, STRING } = FieldDescriptorProto_Type;
const field = (name: string, number: number, type: FieldDescriptorProto_Type, typeName = "", isList = false) =>
  create(FieldDescriptorProtoSchema, {
    name,
    jsonName: name,
    number,
    type,
    typeName,
    label: isList ? FieldDescriptorProto_Label.REPEATED : FieldDescriptorProto_Label.OPTIONAL,
  });

/** A contract as buf compiles it, small enough to see what each rule does. */
function job() {
  const messageType: DescriptorProto[] = [
    create(DescriptorProtoSchema, {
      name: "Job",
      field: [
        field("wait", 1, MESSAGE, ".google.protobuf.Duration"),
        field("waits", 2, MESSAGE, ".google.protobuf.Duration", true),
        field("mode", 3, ENUM, ".test.Mode"),
        field("next", 4, MESSAGE, ".test.Job"),
        field("text", 5, STRING),
      ],
    }),
  ];
  const value = (name: string, number: number) => create(EnumValueDescriptorProtoSchema, { name, number });
  const mode = create(EnumDescriptorProtoSchema, {
    name: "Mode",
    value: [value("MODE_UNSPECIFIED", 0), value("MODE_AT_ONCE", 1), value("MODE_LATER", 2)],
  });
  const file = create(FileDescriptorProtoSchema, {
    name: "job.proto",
    package: "test",
    syntax: "proto3",
    dependency: ["google/protobuf/duration.proto"],
    messageType,
    enumType: [mode],
  });
  const types = createFileRegistry(
    create(FileDescriptorSetSchema, { file: [file_google_protobuf_duration.proto, file] }),
  );
  const message = types.getMessage("test.Job");
  const type = types.getEnum("test.Mode");
  if (message === undefined || type === undefined) throw new Error("the contract of this test does not compile");
  return { message, type };
}

test("a duration is written in milliseconds, or as the contract writes it, at any depth", () => {
  const { message } = job();
  const file = { wait: 1500, waits: [1, "30s"], next: { wait: 4_294_967_295 } };
  expect(contractJson(message, file, {})).toEqual({
    wait: "1.5s",
    waits: ["0.001s", "30s"],
    next: { wait: "4294967.295s" },
  });
});

test("a value of an enum is written in lower case without the enum's name, and its full name stays", () => {
  const { message, type } = job();
  expect(namesOf(type)).toEqual(["at_once", "later"]);
  expect(contractJson(message, { mode: "at_once", next: { mode: "MODE_LATER" } }, {})).toEqual({
    mode: "MODE_AT_ONCE",
    next: { mode: "MODE_LATER" },
  });
});

test("what a spelling says is read before the rules, at any depth", () => {
  const { message } = job();
  const spelling: Spelling = {
    "test.Job": {
      fields: {
        when: { field: "mode", schema: (own) => own },
        words: {
          field: "text",
          schema: (own) => own,
          read: (value) => ({ text: JSON.stringify(value), mode: "later" }),
        },
      },
    },
  };
  expect(contractJson(message, { when: "at_once", next: { words: [1] } }, spelling)).toEqual({
    mode: "MODE_AT_ONCE",
    next: { text: "[1]", mode: "MODE_LATER" },
  });
});

test("what is unknown or of another form is left for the contract to refuse", () => {
  const { message } = job();
  const file = JSON.parse('{"wiat":1,"wait":true,"mode":"never","next":[1],"__proto__":{"a":1}}');
  expect(JSON.stringify(contractJson(message, file, {}))).toBe(JSON.stringify(file));
});

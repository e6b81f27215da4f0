import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ToolLogSchema, ToolProgressSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { boundedEvent, MAX_TOLD_CHARACTERS } from "./bounded-event.ts";

test("SEC-5 a text of progress or log that is too long is told as its beginning and its length", () => {
  const message = "😀".repeat(1_000_000);
  const { value } = boundedEvent({ case: "progress", value: create(ToolProgressSchema, { message }) });
  expect(value.message.length).toBe(MAX_TOLD_CHARACTERS);
  expect(value.message).toMatch(/^😀😀.*… \(2000000 characters\)$/u);
  expect(value.message.isWellFormed()).toBe(true);
});

test("SEC-5 fields of a log that are too long are left out, with their length; short ones stay", () => {
  const log = (fieldsJson: string) =>
    boundedEvent({ case: "log", value: create(ToolLogSchema, { message: "m", fieldsJson }) }).value;
  expect(log(JSON.stringify({ a: "x".repeat(20_000) })).fieldsJson).toBe('{"omitted":"20008 characters"}');
  expect(log('{"a":1}')).toMatchObject({ message: "m", fieldsJson: '{"a":1}' });
});

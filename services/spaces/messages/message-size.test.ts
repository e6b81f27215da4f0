import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ToolMessageSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { fitted } from "./message-size.ts";

const mib = 1_024 * 1_024;

test("TOOL-10 a call that is too large to be shown has a digest of its arguments, and no schema", () => {
  const argumentsJson = JSON.stringify("x".repeat(mib));
  const tool = create(ToolMessageSchema, { argumentsJson, outputSchemaJson: " ".repeat(mib), callId: "c" });
  const shown = fitted(tool);
  expect(JSON.parse(shown.argumentsJson)).toEqual({ truncated: true, bytes: mib + 2 });
  expect(shown).toMatchObject({ outputSchemaJson: "", callId: "c" });
  expect(tool.argumentsJson, "what was given stays as it is").toBe(argumentsJson);
});

test("TOOL-10 what fits is shown as it is", () => {
  const tool = create(ToolMessageSchema, { result: { outputJson: "1" } });
  expect(fitted(tool)).toBe(tool);
});

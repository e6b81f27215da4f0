import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { textOfWaiting } from "./waiting-calls.ts";

const call = { callId: "c1", tool: "confirm", argumentsJson: '{"question":"Now?"}' };

test("PROD-3 who is waited for is told with the command that answers, and what the answer has to hold", () => {
  const properties = { approved: { type: "boolean" }, note: { type: ["string", "null"] } };
  const outputSchemaJson = JSON.stringify({ type: "object", properties });
  const space = { executionType: ExecutionType.SPACE, spaceId: "desk" };
  expect(textOfWaiting(create(ToolCallSchema, { ...call, ...space, outputSchemaJson }))).toBe(
    `waits for a person in the space desk: confirm {"question":"Now?"}\n  toolbus answer desk c1 '{"approved":true,"note":"…"}'`,
  );
  const question = { question: { callId: "c0", name: "" } };
  expect(textOfWaiting(create(ToolCallSchema, { ...call, ...space, ...question }))).toContain(
    "toolbus calls answer c1 '{}'",
  );
  expect(textOfWaiting(create(ToolCallSchema, call))).toMatch(
    /whoever watches for confirm .*\n {2}toolbus calls submit c1 'JSON'/,
  );
});

test("PROD-3 a schema of a result that says nothing of an object is no reason to say nothing", () => {
  for (const outputSchemaJson of ["true", "[]", '{"properties":null}', '{"properties":{"a":true}}'])
    expect(textOfWaiting(create(ToolCallSchema, { ...call, outputSchemaJson }))).toContain("toolbus calls submit c1");
});

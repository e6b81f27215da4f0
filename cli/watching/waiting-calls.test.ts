import { execFileSync } from "node:child_process";
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

test("SEC-1 the command that answers is one for a shell too, whatever a server writes into the form of its question", () => {
  const question = { callId: "c0", name: "" };
  const form = { type: "object", properties: { size: { const: "it's'; echo done; '" } } };
  const argumentsJson = JSON.stringify({ mode: "form", message: "Which?", requestedSchema: form });
  const text = textOfWaiting(create(ToolCallSchema, { ...call, argumentsJson, question }));
  const command = text.slice(text.lastIndexOf("\n")).replace("toolbus", "printf '%s\\n'");
  const words = execFileSync("sh", ["-c", command], { encoding: "utf8" }).trim().split("\n");
  expect(words).toEqual(["calls", "answer", "c1", JSON.stringify({ size: form.properties.size.const })]);
});

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { AuditEventSchema, AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ExplainStage, ExplainToolResponseSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { linesOfExplanation } from "../commands/tools/explain.ts";
import { auditKindFrom, auditKindNames, textOfAuditEvent } from "./audit-printer.ts";

it("ORCH-11 a decision is a line: when, what, where, about whom, why", () => {
  const event = create(AuditEventSchema, {
    createTime: timestampFromMs(0),
    service: "tool-router",
    kind: AuditKind.BLOCKED,
    agent: "reader",
    sessionId: "s1",
    tool: "@files/remove",
    rule: "not in tools.use",
    message: "it is not in tools.use.\nIt may call: a",
  });
  expect(textOfAuditEvent(event)).toBe(
    "1970-01-01T00:00:00.000Z  blocked      tool-router  agent reader, session s1, tool @files/remove  " +
      "it is not in tools.use. It may call: a",
  );
  const permitted = create(AuditEventSchema, { kind: AuditKind.PERMITTED, agent: "a", rule: "in tools.allowed" });
  expect(textOfAuditEvent(permitted)).toBe("permitted    agent a  in tools.allowed");
});

it("each kind has a name that can be asked for, in several spellings", () => {
  for (const name of auditKindNames()) expect(auditKindFrom(name)).toBeGreaterThan(0);
  expect(auditKindFrom("SWITCH_TIMED_OUT")).toBe(AuditKind.SWITCH_TIMED_OUT);
  expect(auditKindFrom("switch timed out")).toBe(AuditKind.SWITCH_TIMED_OUT);
  expect(auditKindFrom("unspecified")).toBeUndefined();
  expect(auditKindFrom("nothing")).toBeUndefined();
});

it("ORCH-5 an explanation is read from the name to the decision, and tells what else may be called", () => {
  const response = create(ExplainToolResponseSchema, {
    reference: "@files/remove",
    modelName: "files__remove",
    aliases: ["rm", "del"],
    rule: "not in tools.allowed",
    closestNames: ["files__read"],
    steps: [
      { stage: ExplainStage.ALIAS, finding: "it is an alias of @files/remove", passed: true },
      { stage: ExplainStage.ALLOWED, finding: "not in tools.allowed", passed: false },
    ],
  });
  expect(linesOfExplanation("reader", "rm", response)).toEqual([
    "@files/remove, which models call files__remove",
    "aliases: del",
    "✓ alias        it is an alias of @files/remove",
    "✗ allowed      not in tools.allowed",
    "not callable by reader: not in tools.allowed",
    "closest that it may call: files__read",
  ]);
});

import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { RunSourceSchema } from "#gen/toolbus/tool/v1/source_pb.ts";
import { createPolicy } from "../../../tools/policy.ts";
import { agentOfRun } from "./run-sources.ts";

const digest = `sha256:${"a".repeat(64)}`;
const agent = create(AgentSchema, {
  name: "helper",
  sources: [{ name: "files", provider: "mcp", pin: true }],
  tools: { use: ["@files/*"], pins: { "@files/read": digest }, builtins: { names: ["plans"] } },
});
const runSources = [create(RunSourceSchema, { name: "notes", provider: "mcp" })];
const tools = agentOfRun(agent, { runId: "r", runSources }, () => true).tools!;

test("SEC-4 an agent's pins hold in a run that brings sources, too", () => {
  expect(tools.pins).toEqual({ "@files/read": digest });
});

test("PROD-4 a run that brings sources has the built-ins that its agent chooses, and no others", () => {
  const policy = createPolicy("helper", tools);
  const names = ["@notes/list", "@files/read", "set_plans", "send_message"];
  expect(names.filter(policy.isInUse)).toEqual(["@notes/list", "@files/read", "set_plans"]);
});

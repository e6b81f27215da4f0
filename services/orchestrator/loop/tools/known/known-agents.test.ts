import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { StoredAgentSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { createKnownAgents } from "./known-agents.ts";

const stored = (name: string, revision: bigint) => create(StoredAgentSchema, { agent: { name }, revision });

test("LOOP-1 an agent that was read is known until its session's context has a later revision", () => {
  const agents = createKnownAgents();
  const helper = stored("helper", 7n);
  agents.keep(helper);
  expect([6, 7, 8, 0].map((revision) => agents.find("helper", revision))).toEqual([
    helper.agent,
    helper.agent,
    undefined,
    undefined,
  ]);
  expect(agents.find("other", 1)).toBeUndefined();
  const changed = stored("helper", 9n);
  agents.keep(changed);
  expect(agents.find("helper", 8)).toBe(changed.agent);
});

test("the agents that were read longest ago are forgotten first", () => {
  const agents = createKnownAgents();
  for (let n = 0; n < 256; n += 1) agents.keep(stored(`a${n}`, 1n));
  agents.keep(stored("a0", 2n));
  agents.keep(stored("new", 1n));
  expect(["a0", "a1", "a2", "new"].map((name) => agents.find(name, 1) !== undefined)).toEqual([
    true,
    false,
    true,
    true,
  ]);
});

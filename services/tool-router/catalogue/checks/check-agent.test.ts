import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { computedMs } from "#runtime/time/testing/machine-time.ts";
import { type AgentCheck, checkAgent } from "./check-agent.ts";

const nothing: AgentCheck = {
  hasTool: () => false,
  hasToolLike: () => false,
  refusedFile: () => undefined,
  isByNameOnly: () => false,
  hasProvider: () => true,
  findAgent: () => undefined,
  ownSources: { names: () => new Set() },
};
const count = 1_000;
const nameOf = (n: number) => `${"a".repeat(240)}${n}`;

test.each([
  ["a chain", (n: number) => nameOf(n + 1), 969],
  ["a circle", (n: number) => nameOf((n + 1) % count), 1_000],
])(
  "SEC-5 as many aliases as there may be, in %s, are checked in no time, and told in few words",
  async (_, nextOf, refused) => {
    const aliases = Object.fromEntries(Array.from({ length: count }, (_, n) => [nameOf(n), nextOf(n)]));
    const agent = create(AgentSchema, { name: "mallory", tools: { aliases } });
    let faults: readonly string[] = [];
    const check = () => {
      ({ faults } = checkAgent(agent, nothing));
    };
    expect(await computedMs(check)).toBeLessThan(500);
    expect(faults).toHaveLength(count);
    expect(faults.filter((fault) => fault.includes(": leads through too many aliases ("))).toHaveLength(refused);
    expect(Math.max(...faults.map(({ length }) => length))).toBeLessThan(4_096);
  },
);

test("LOOP-12 ORCH-5 tools to stop at that an agent does not have are told, its own and those that it gives an agent that it calls", () => {
  const called = create(AgentSchema, {
    name: "writer",
    tools: { use: ["@files/*", "submit"], aliases: { done: "submit" } },
  });
  const stopAtTools = ["submit", "done", "@files/write", "files__write", "sumbit"];
  const agent = create(AgentSchema, {
    name: "lead",
    tools: { use: ["agent_writer"] },
    limits: { stopAtTools: ["agent_writer", "submit"] },
    subAgents: [{ agent: "writer", limits: { stopAtTools } }],
  });
  const has = (name: string) => name === "submit";
  const { warnings } = checkAgent(agent, { ...nothing, hasTool: has, findAgent: () => called });
  const only = "only what a client or a caller offers can be called so";
  expect(warnings).toEqual([
    `subAgents[0].limits.stopAtTools[4]: "sumbit" is not in tools.use of agent "writer"; ${only}`,
    `limits.stopAtTools[1]: "submit" is not in tools.use; ${only}`,
  ]);
});

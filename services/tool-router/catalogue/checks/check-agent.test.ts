import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
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
  (_, nextOf, refused) => {
    const aliases = Object.fromEntries(Array.from({ length: count }, (_, n) => [nameOf(n), nextOf(n)]));
    const agent = create(AgentSchema, { name: "mallory", tools: { aliases } });
    const before = process.threadCpuUsage();
    const { faults } = checkAgent(agent, nothing);
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(500);
    expect(faults).toHaveLength(count);
    expect(faults.filter((fault) => fault.includes(": leads through too many aliases ("))).toHaveLength(refused);
    expect(Math.max(...faults.map(({ length }) => length))).toBeLessThan(4_096);
  },
);

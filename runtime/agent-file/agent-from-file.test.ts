import { readdirSync, readFileSync } from "node:fs";
import { type JsonObject, toJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { agentFromFile } from "./agent-from-file.ts";

const source = { name: "s", provider: "mcp", config: { url: "http://127.0.0.1:1" } };

describe("an agent from a file", () => {
  test("TOOL-14 servers and workers are sources, before those that are written out", () => {
    const server = { name: "files", command: "npx" };
    const agent = agentFromFile({
      name: "a",
      mcp: { servers: [server] },
      workers: [{ name: "w", secrets: ["S"] }],
      sources: [source],
    });
    expect(agent.sources).toMatchObject([
      { name: "files", provider: "mcp", config: { name: "files", stdio: { command: "npx" } } },
      { name: "w", provider: "worker", config: { secrets: ["S"] } },
      source,
    ]);
  });

  test("ORCH-2 an empty list of allowed tools in a file allows what is in use, as no list does", () => {
    const allowedOf = (tools: JsonObject) => agentFromFile({ name: "a", tools }).tools?.allowed?.names;
    expect(allowedOf({ use: ["*"], allowed: [] })).toBeUndefined();
    expect(allowedOf({ use: ["*"] })).toBeUndefined();
    expect(allowedOf({ use: ["*"], allowed: ["*"] })).toEqual(["*"]);
    expect(allowedOf({ use: ["*"], allowed: { names: [] } })).toEqual([]);
  });

  test("PROD-4 a list chooses built-ins, an empty one none", () => {
    const chosen = (tools: JsonObject) => agentFromFile({ name: "a", tools }).tools?.builtins?.names;
    expect(chosen({})).toBeUndefined();
    expect(chosen({ builtins: [] })).toEqual([]);
    expect(chosen({ builtins: ["memory", "skip"] })).toEqual(["memory", "skip"]);
  });

  test("the contract's own form stays as it is", () => {
    const agent = agentFromFile({ name: "a", sources: [source] });
    const json = toJson(AgentSchema, agent);
    expect(agentFromFile(json as { name: string })).toEqual(agent);
  });

  test.each([
    [{ mcp: [] }, /^mcp: expected an object/],
    [{ mcp: { servers: {} } }, /^mcp\.servers: expected a list of objects/],
    [{ workers: ["qr"] }, /^workers: expected a list of objects/],
    [{ sources: null }, /^sources: expected a list of objects/],
    [{ tool: {} }, /"tool" is unknown/],
  ])("%j is refused with what is wrong", (file, message) => {
    expect(() => agentFromFile({ name: "a", ...file })).toThrow(message);
  });

  const examples = new URL("../../examples/agents/", import.meta.url);
  test.each(readdirSync(examples))("the example %s is one", (name) => {
    const file = JSON.parse(readFileSync(new URL(name, examples), "utf8"));
    expect(agentFromFile(file).sources.map(({ provider }) => provider)).toEqual(["mcp", "worker"]);
  });
});

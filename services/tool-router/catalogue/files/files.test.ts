import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import {
  type Agent,
  AgentSourceSchema,
  LimitsSchema,
  ModelSchema,
  SubAgentSchema,
} from "#gen/toolbus/agent/v1/agent_pb.ts";
import { Builtin, Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { usd, usdPrice } from "#runtime/money/testing/dollars.ts";
import { createValidator } from "#runtime/schema/json-schema/validator.ts";
import { agent, tool } from "../../testing/fakes/tools.ts";
import { checkAgent } from "../checks/check-agent.ts";
import { faultsOfTool } from "../checks/check-tool.ts";
import { parseAgentFile } from "./agent-file.ts";
import { parseToolFile } from "./tool-file.ts";

const parsed = <T>(of: { kind: "parsed"; value: T } | { kind: "faulty"; faults: string[] }): T | string[] =>
  of.kind === "parsed" ? of.value : of.faults;

const source = (name: string) => create(AgentSourceSchema, { name, provider: "mcp" });

describe("agent files", () => {
  test("TOOL-14 servers and workers are sources, whole as they were written", () => {
    const server = { name: "files", command: "npx", args: ["x"], healthCheck: { intervalMs: 5 } };
    const stdio = { command: "npx", args: ["x"] };
    const config = { name: "files", stdio, healthCheck: { interval: "0.005s" } };
    const file = {
      name: "a",
      mcp: { servers: [server] },
      workers: [{ name: "w", secrets: ["S"] }],
      limits: { maxTurns: 3 },
    };
    expect(parsed(parseAgentFile(JSON.stringify(file)))).toMatchObject({
      name: "a",
      limits: { maxTurns: 3 },
      sources: [
        { name: "files", provider: "mcp", config },
        { name: "w", provider: "worker", config: { secrets: ["S"] } },
      ],
    });
  });

  test("a model's provider may be a package of one", () => {
    const model = { provider: "@ai-sdk/anthropic", model: "claude" };
    expect(parsed(parseAgentFile(JSON.stringify({ name: "a", model })))).toMatchObject({ name: "a", model });
  });

  test.each(["0s", "0.0s", "99999999999999999s", 0])("a time of %j is refused with its path", (timeout) => {
    const file = { name: "a", limits: { timeout } };
    expect(JSON.stringify(parsed(parseAgentFile(JSON.stringify(file))))).toMatch(/limits\.timeout/);
  });

  test("tell all their faults at once, with paths", () => {
    const file = {
      name: "bad name",
      mcp: { servers: [{ name: "x", url: 1 }] },
      limits: { maxTurns: -1 },
      tools: { use: [1] },
    };
    expect(parsed(parseAgentFile(JSON.stringify(file)))).toEqual([
      'name: must match pattern "^[a-zA-Z0-9_-]{1,64}$"',
      "tools.use[0]: must be string",
      "mcp.servers[0].url: must be string",
      "limits.maxTurns: must be >= 1",
    ]);
    expect(parsed(parseAgentFile("{"))).toEqual([expect.stringMatching(/^is no JSON: /)]);
  });
});

describe("tool files", () => {
  test("TOOL-1 have defaults", () => {
    expect(parsed(parseToolFile('{"name":"t","executionType":"internal"}'))).toMatchObject({
      description: "",
      inputSchemaJson: '{"type":"object"}',
      isAsync: false,
    });
  });

  test("TOOL-1 say their kind in two ways, KIND-3 custom kinds too", () => {
    const policy = { allowedPaths: ["/data"] };
    expect(
      parsed(parseToolFile(JSON.stringify({ name: "fs_read", kind: "builtin", builtinPolicy: policy }))),
    ).toMatchObject({
      executionType: ExecutionType.BUILTIN,
      builtinPolicy: { builtin: Builtin.FS_READ, allowedPaths: ["/data"] },
    });
    expect(parsed(parseToolFile('{"name":"t","executionType":"acme:thing","effect":"at_most_once"}'))).toMatchObject({
      executionType: ExecutionType.CUSTOM,
      customType: { provider: "acme", toolType: "thing" },
      effect: Effect.AT_MOST_ONCE,
    });
    expect(parsed(parseToolFile('{"name":"t","kind":"internal","executionType":"internal"}'))).toMatchObject({
      executionType: ExecutionType.INTERNAL,
    });
    expect(parsed(parseToolFile('{"name":"t","kind":"internal","executionType":"external"}'))).toEqual([
      'kind: is "internal", and executionType is "external"',
    ]);
  });

  test("TOOL-1 unknown fields and a missing kind are refused with their paths", () => {
    expect(parsed(parseToolFile('{"name":"t","executionType":"gateway","url":"x"}'))).toEqual([
      "url: is not a known field",
    ]);
    expect(parsed(parseToolFile('{"name":"t"}'))).toContain("the file: must have required property 'executionType'");
    expect(parsed(parseToolFile('{"name":"t","executionType":"magic"}'))).toContain(
      "executionType: must be equal to one of the allowed values " +
        '("function", "gateway", "external", "space", "internal", "mcp", "worker", "hosted", "builtin", "caller")',
    );
  });
});

describe("tools of the catalogue", () => {
  const check = { validator: createValidator(), hasProvider: (name: string) => name === "acme", secrets: new Map() };
  const execution = { url: "https://example.org" };
  const builtin = (builtinPolicy: { builtin?: Builtin; allowedPaths?: string[]; allowedCommands?: string[] }) =>
    tool("t", { executionType: ExecutionType.BUILTIN, builtinPolicy });

  test.each([
    [tool("t", { executionType: ExecutionType.GATEWAY }), "execution.url: a gateway tool needs a URL"],
    [
      tool("t", { execution: { url: "ftp://x" } }),
      "execution.url: must be an absolute http or https URL without user and password",
    ],
    [
      tool("t", { executionType: ExecutionType.EXTERNAL, execution, isAsync: true }),
      "isAsync: a tool with a URL answers at once",
    ],
    [tool("t", { executionType: ExecutionType.SPACE, visible: false }), "visible: a space tool is always visible"],
    [tool("skip"), "name: skip is the name of a built-in"],
    [
      tool("t", { executionType: ExecutionType.MCP }),
      "executionType: mcp tools come from sources, callers and runs, not from the catalogue",
    ],
    [
      tool("t", { executionType: ExecutionType.HOSTED, isAsync: true }),
      "isAsync: hosted and builtin tools answer at once",
    ],
    [
      tool("t", { executionType: ExecutionType.HOSTED, builtinPolicy: { builtin: Builtin.FS_READ } }),
      "builtinPolicy: is for tools of kind builtin",
    ],
    [tool("t", { executionType: ExecutionType.BUILTIN }), "builtinPolicy: a builtin tool is nothing without one"],
    [builtin({}), "builtinPolicy.name: must be one of fs_read, fs_write, shell_exec"],
    [
      builtin({ builtin: Builtin.FS_READ, allowedPaths: ["/data", "data"] }),
      "builtinPolicy.allowedPaths[1]: must be an absolute path",
    ],
    [
      builtin({ builtin: Builtin.SHELL_EXEC, allowedCommands: ["git", "/bin/ls", "./x"] }),
      "builtinPolicy.allowedCommands[2]: must be a bare name or an absolute path",
    ],
    [
      builtin({ builtin: Builtin.FS_READ, allowedCommands: ["cat"] }),
      "builtinPolicy.allowedCommands: is for shell_exec",
    ],
    [
      tool("t", { executionType: ExecutionType.CUSTOM, customType: { provider: "nobody", toolType: "x" } }),
      'executionType: there is no provider "nobody"',
    ],
    [tool("t", { inputSchemaJson: '{"type":"objekt"}' }), expect.stringMatching(/^inputSchema: is no JSON Schema: /)],
    [tool("t", { inputSchemaJson: '{"type":"string"}' }), "inputSchema: is not one of objects, as arguments are"],
  ])("TOOL-1 KIND-3 are refused with the path of the fault: $name", async (one, fault) => {
    expect(await faultsOfTool(one, check)).toEqual([fault]);
  });

  test("TOOL-3 a tool of any kind may have a URL, which is what is called", async () => {
    expect(await faultsOfTool(tool("t", { executionType: ExecutionType.HOSTED, execution }), check)).toEqual([]);
  });

  test("ORCH-9 WORK-12 a built-in with its policy and a hosted tool are good", async () => {
    const policy = { builtin: Builtin.SHELL_EXEC, allowedPaths: ["/data"], allowedCommands: ["git", "/bin/ls"] };
    expect(await faultsOfTool(builtin(policy), check)).toEqual([]);
    expect(await faultsOfTool(tool("t", { executionType: ExecutionType.HOSTED }), check)).toEqual([]);
  });

  test("KIND-3 a custom kind of a known provider is good", async () => {
    expect(
      await faultsOfTool(
        tool("t", { executionType: ExecutionType.CUSTOM, customType: { provider: "acme", toolType: "x" } }),
        check,
      ),
    ).toEqual([]);
  });
});

test("files may begin with a byte order mark", () => {
  expect(parseToolFile('\uFEFF{"name":"t","executionType":"internal"}')).toMatchObject({ kind: "parsed" });
  expect(parseAgentFile('\uFEFF{"name":"a"}')).toMatchObject({ kind: "parsed" });
});

describe("agents", () => {
  const check = {
    hasTool: (name: string) => name === "echo",
    isByNameOnly: () => false,
    hasToolLike: (matches: (name: string) => boolean) => matches("echo"),
    refusedFile: (tool: string) => (tool === "count" ? "tools/count.json" : undefined),
    hasProvider: () => true,
    findAgent: (name: string) => (name === "helper" ? agent({}) : undefined),
    ownSources: { names: () => new Set(["notes"]) },
  };

  test("ORCH-5 say what is doubtful beside what is wrong", () => {
    const [helper, nobody] = ["helper", "nobody"].map((name) => create(SubAgentSchema, { agent: name }));
    const faulty = agent({
      use: ["nada", "@nope/x", "agent_*"],
      allowed: { names: ["zzz"] },
      aliases: { a: "b", b: "a" },
    });
    const { faults, warnings } = checkAgent({ ...faulty, subAgents: [helper!, nobody!] }, check);
    expect(faults).toEqual([
      "tools.aliases.a: leads in a circle (a → b → a)",
      "tools.aliases.b: leads in a circle (b → a → b)",
    ]);
    expect(warnings).toEqual([
      'tools.use[0]: there is no tool "nada"; only what a caller offers, or a hosted module, a worker or a provider by itself, can fill it',
      'tools.use[1]: no source "nope" is declared; only what a caller offers, or a hosted module, a worker or a provider by itself, can fill it',
      'subAgents[1].agent: there is no agent "nobody"',
      'tools.allowed[0]: "zzz" is not in tools.use',
    ]);
  });

  test("ORCH-5 say which of their tools do not exist", () => {
    const { faults, warnings } = checkAgent(
      agent({ use: ["echo", "nothing", "@no/tool"], allowed: { names: ["other", "echo"] } }),
      check,
    );
    expect(faults).toEqual([]);
    expect(warnings).toEqual([
      'tools.use[1]: there is no tool "nothing"; only what a caller offers, or a hosted module, a worker or a provider by itself, can fill it',
      'tools.use[2]: no source "no" is declared; only what a caller offers, or a hosted module, a worker or a provider by itself, can fill it',
      'tools.allowed[0]: "other" is not in tools.use',
    ]);
  });

  test.each([
    [
      ["@files/*", "get_*"],
      ['tools.use[0]: no source "files" is declared', 'tools.use[1]: no tool is like "get_*"'],
    ],
    [["nothing"], ['tools.use[0]: there is no tool "nothing"']],
    [["count"], ['tools.use[0]: there is no tool "count", as tools/count.json is refused']],
  ])("ORCH-5 say that none of their tools resolves: %j", (use, missing) => {
    expect(checkAgent(agent({ use }), check).warnings).toEqual([
      ...missing.map(
        (words) =>
          `${words}; only what a caller offers, or a hosted module, a worker or a provider by itself, can fill it`,
      ),
      "tools.use: no tool resolves",
    ]);
  });

  test("ORCH-5 patterns that something fits are no matter, were it a source that a hosted module is by itself", () => {
    const use = ["@files/*", "@fi*/x", "ec*", "*", "@notes/*"];
    const withSource = { ...agent({ use }), sources: [source("files")] };
    expect(checkAgent(withSource, check)).toEqual({ faults: [], warnings: [] });
  });

  test("LOOP-17 ORCH-5 agents that an agent may call are tools of it, and say when they are not in use", () => {
    const helper = create(SubAgentSchema, { agent: "helper" });
    for (const use of [["agent_helper"], ["agent_*"]]) {
      const aliases = { help: "agent_helper" };
      expect(checkAgent({ ...agent({ use, aliases }), subAgents: [helper] }, check)).toEqual({
        faults: [],
        warnings: [],
      });
    }
    const unused = { ...agent({ use: ["echo"] }), subAgents: [helper] };
    expect(checkAgent(unused, check).warnings).toEqual([
      "subAgents[0]: agent_helper is not in tools.use, so that it cannot be called",
    ]);
  });

  test.each([
    [{ it: "nowhere" }, 'tools.aliases.it: points to "nowhere", which does not exist'],
    [{ it: "@files/x" }, 'tools.aliases.it: points to "@files/x", which does not exist'],
    [{ a: "b", b: "a" }, "tools.aliases.a: leads in a circle (a → b → a)"],
    [{ a: "a" }, "tools.aliases.a: leads in a circle (a → a)"],
    [{ skip: "echo" }, "tools.aliases.skip: skip is the name of a built-in"],
    [{ echo: "skip" }, "tools.aliases.echo: echo is the name of a tool"],
  ])(
    "ORCH-3 an alias that points nowhere, in a circle, or is named like another tool is refused: %j",
    (aliases, fault) => {
      expect(checkAgent(agent({ use: ["echo"], aliases }), check).faults).toContain(fault);
    },
  );

  test("ORCH-3 aliases may lead through each other to a tool", () => {
    expect(checkAgent(agent({ use: ["echo"], aliases: { one: "two", two: "echo" } }), check).faults).toEqual([]);
  });

  test("PROD-4 a choice of what is no built-in is refused with what was meant", () => {
    const chosen = (...names: string[]) => checkAgent(agent({ builtins: { names } }), check).faults;
    expect(chosen("spaces", "memory", "plans", "skip")).toEqual([]);
    expect(chosen("plan")).toEqual([
      'tools.builtins[0]: "plan" is no built-in and no group of them; did you mean "plans"?',
    ]);
    expect(chosen("skip", "zzz")).toEqual([
      'tools.builtins[1]: "zzz" is no built-in and no group of them; the groups are spaces, memory, plans',
    ]);
  });

  test("LOOP-12 a budget in money wants a price of each model", () => {
    const [model, price] = [create(ModelSchema, { model: "m" }), usdPrice(0, 0)];
    const limits = create(LimitsSchema, { maxCost: usd(2) });
    const faultsOf = (more: Partial<Agent>) => checkAgent({ ...agent({}), ...more }, check).faults;
    const fault = (path: string) => `${path}.price: limits.maxCost wants one, 0 for what is free`;
    expect(faultsOf({ limits, model, fallbackModel: model })).toEqual([fault("model"), fault("fallbackModel")]);
    expect(faultsOf({ limits, model: create(ModelSchema, { model: "m", price }) })).toEqual([]);
    expect(faultsOf({ model })).toEqual([]);
  });

  test("LOOP-12 say which of the agents that they call their budget could not hold, as those stand", () => {
    const called = { ...agent({ use: ["agent_helper"] }), subAgents: [create(SubAgentSchema, { agent: "helper" })] };
    const limits = create(LimitsSchema, { maxCost: usd(2) });
    const warningsWith = (price: object, more: Partial<Agent> = { limits }) => {
      const helper = { ...agent({}), model: create(ModelSchema, { model: "m", ...price }) };
      return checkAgent({ ...called, ...more }, { ...check, findAgent: () => helper }).warnings;
    };
    const doubt = (fault: string) =>
      `subAgents[0].agent: limits.maxCost is in USD, but its model "m" ${fault}, so that it cannot be called`;
    const inEuro = { price: { currencyCode: "EUR" } };
    expect(warningsWith(inEuro)).toEqual([doubt("has its price in EUR")]);
    expect(warningsWith({})).toEqual([doubt("has no price")]);
    expect(warningsWith({ price: usdPrice(1, 1) })).toEqual([]);
    expect(warningsWith(inEuro, {})).toEqual([]);
  });

  test("LOOP-12 prices and limits of an agent are in one currency", () => {
    const modelIn = (currencyCode: string) => create(ModelSchema, { model: "m", price: { currencyCode } });
    const limits = create(LimitsSchema, { maxCost: usd(2) });
    const helper = create(SubAgentSchema, { agent: "helper", limits });
    const faultsOf = (more: Partial<Agent>) => checkAgent({ ...agent({}), ...more }, check).faults;
    const fault = (path: string) =>
      `${path}.currencyCode: is USD, but model.price is in EUR: an agent has one currency`;
    expect(faultsOf({ model: modelIn("EUR"), fallbackModel: modelIn("USD") })).toEqual([fault("fallbackModel.price")]);
    expect(faultsOf({ model: modelIn("EUR"), limits })).toEqual([fault("limits.maxCost")]);
    expect(faultsOf({ model: modelIn("EUR"), subAgents: [helper] })).toEqual([fault("subAgents[0].limits.maxCost")]);
    expect(faultsOf({ model: modelIn("USD"), fallbackModel: modelIn("USD"), limits, subAgents: [helper] })).toEqual([]);
  });
});

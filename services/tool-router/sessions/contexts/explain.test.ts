import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AgentSourceSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { SourceStatusSchema } from "#gen/toolbus/tool/v1/source_pb.ts";
import { Builtin, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ExplainStage, ExplainStageSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { agent, catalogueOf, offer, tool } from "../../testing/fakes/tools.ts";
import { createToolSet } from "../../tools/tool-set/tool-set.ts";
import { explain } from "./explain.ts";

const toolUse = {
  use: ["@files/*", "@down/*", "show", "weather"],
  allowed: { names: ["read", "@down/*", "show"] },
  aliases: { read: "reader", reader: "@files/read_file" },
};
const sources = ["files", "down", "unused"].map((name) => create(AgentSourceSchema, { name, provider: "mcp" }));
const catalogue = catalogueOf(tool("show", { visible: true }), tool("weather"), tool("hidden"));
const offers = [
  offer("mcp", { files: ["read_file", "write_file"] }),
  offer(
    "worker",
    { down: ["slow"] },
    {
      sources: [create(SourceStatusSchema, { source: "down", reason: "it ended with 1" })],
    },
  ),
  offer("acme", { "": ["hammer"] }, { declared: new Map() }),
];
const [broken] = offers[0]!.tools.filter((one) => one.tool?.name === "write_file");
const tools = createToolSet({ ...agent(toolUse), sources }, catalogue, offers);

async function told(name: string, space?: string, set = tools) {
  const explained = await explain(set, name, { activeSpace: space === undefined ? undefined : async () => space });
  const failed = explained.steps.find(({ passed }) => !passed);
  return { ...explained, stages: explained.steps.map(({ stage }) => stage), failedAt: failed?.stage };
}

test("ORCH-5 the way of a tool that may be called, from an alias of an alias to the entries that let it", async () => {
  const explained = await told("read");
  expect(explained).toMatchObject({
    reference: "@files/read_file",
    modelName: "files__read_file",
    aliases: ["read", "reader"],
    provider: "mcp",
    available: true,
    visible: false,
    callable: true,
    rule: "in tools.allowed",
    closestNames: [],
    failedAt: undefined,
  });
  expect(
    explained.steps.map(
      ({ stage, finding }) => `${ExplainStageSchema.value[stage]?.localName.toLowerCase()}: ${finding}`,
    ),
  ).toEqual([
    "alias: it is an alias of @files/read_file",
    'resolve: "read" is the alias of @files/read_file',
    "provider: provider mcp, source files",
    "availability: its source can be used",
    'use: the entry "@files/*" of tools.use fits',
    'allowed: the entry "read" of tools.allowed fits',
    "visible: call and result appear in no space",
  ]);
});

test("ORCH-5 a tool that is in use and not allowed", async () => {
  expect(await told("files__write_file")).toMatchObject({
    callable: false,
    failedAt: ExplainStage.ALLOWED,
    rule: "not in tools.allowed",
  });
});

test("ORCH-5 a tool outside of use is explained as far as any other, and names what may be called", async () => {
  expect(await told("hidden")).toMatchObject({
    reference: "hidden",
    available: true,
    callable: false,
    failedAt: ExplainStage.USE,
  });
  const foreign = await told("hammer");
  expect(foreign).toMatchObject({ provider: "acme", callable: false, rule: "no entry of tools.use fits" });
  expect(foreign.stages).toEqual([
    ExplainStage.ALIAS,
    ExplainStage.RESOLVE,
    ExplainStage.PROVIDER,
    ExplainStage.AVAILABILITY,
    ExplainStage.USE,
    ExplainStage.VISIBLE,
  ]);
  const unasked = await told("@unused/thing");
  expect(unasked.rule).toBe("no entry of tools.use fits, so that @unused is not asked for its tools");
});

test("ORCH-5 a tool whose source cannot be used, with the reason", async () => {
  expect(await told("@down/slow")).toMatchObject({
    provider: "worker",
    available: false,
    unavailableReason: "it ended with 1",
    callable: false,
    failedAt: ExplainStage.AVAILABILITY,
  });
});

test("ORCH-5 a name that is no tool's: what is away, and which names are close", async () => {
  const explained = await told("reed_file");
  expect(explained).toMatchObject({ reference: "", callable: false, closestNames: ["files__read_file"] });
  expect(explained.rule).toBe("no tool has this name; down cannot be used: it ended with 1");
});

test("ORCH-5 TOOL-11 a visible tool needs a space", async () => {
  expect(await told("show")).toMatchObject({ visible: true, callable: true });
  expect(await told("show", "")).toMatchObject({ callable: false, failedAt: ExplainStage.VISIBLE });
  expect(await told("show", "room")).toMatchObject({ callable: true });
});

test("ORCH-5 a tool that is permitted, and unfit as it was offered", async () => {
  const faulty = { ...offers[0]!, faults: new Map([[broken!, "its input schema is no JSON Schema"]]) };
  const set = createToolSet(agent({ use: ["@files/*"] }), catalogue, [faulty]);
  expect(await told("@files/write_file", undefined, set)).toMatchObject({
    callable: false,
    failedAt: ExplainStage.OFFER,
    rule: "its input schema is no JSON Schema",
  });
  expect(set.byModelName.get("files__write_file")?.decision.kind).toBe("blocked");
  expect(set.byModelName.get("files__read_file")?.decision.kind).toBe("permitted");
});

test("ORCH-3 ORCH-5 a pattern that would fit a tool of kind builtin does not reach it, and that is said", async () => {
  const builtin = tool("notes", { executionType: ExecutionType.BUILTIN, builtinPolicy: { builtin: Builtin.FS_READ } });
  const set = createToolSet(agent({ use: ["*"], aliases: { n: "notes" } }), catalogueOf(builtin), []);
  const finding = "it is not named in tools.use, and no pattern reaches a tool of kind builtin";
  for (const name of ["notes", "n"])
    expect(await told(name, undefined, set)).toMatchObject({ rule: finding, callable: false });
  const named = createToolSet(agent({ use: ["*", "notes"] }), catalogueOf(builtin), []);
  const { steps, callable } = await told("notes", undefined, named);
  expect(callable).toBe(true);
  expect(steps.find(({ stage }) => stage === ExplainStage.USE)?.finding).toBe('the entry "notes" of tools.use fits');
});

test.each([
  [ExecutionType.SPACE, "a person answers, in the active space"],
  [ExecutionType.EXTERNAL, "a service that watches for its calls answers"],
  [ExecutionType.GATEWAY, "the router calls its URL"],
  [ExecutionType.INTERNAL, "nobody runs it: the arguments are the result"],
])("ORCH-5 of a tool of kind %i is told who answers: %s", async (executionType, finding) => {
  const execution = executionType === ExecutionType.GATEWAY ? { url: "https://a.example/" } : undefined;
  const one = tool("one", { executionType, ...(execution && { execution }) });
  const explained = await told("one", undefined, createToolSet(agent({ use: ["one"] }), catalogueOf(one), []));
  expect(explained.steps.find(({ stage }) => stage === ExplainStage.PROVIDER)?.finding).toBe(finding);
});

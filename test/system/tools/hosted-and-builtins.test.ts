import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Run, RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { runToEnd } from "../../harness/agents/plain-run.ts";
import { writeFiles } from "../../harness/agents/write-files.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

/** A hosted tool that uses the agent's tools and a model, and is told what it may not. */
const BRIEF = `
export default {
  tools: [{
    name: "brief",
    description: "Sums up a file",
    inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    async run({ path }, { registry, model, config }) {
      const { content } = await registry.call("fs_read", { path });
      const hidden = await registry.call("hidden", { path: "/etc/passwd" }).catch((error) => error.message);
      const escape = await registry.call("fs_read", { path: "../secret.txt" }).catch((error) => error.message);
      const { text } = await model.generate({ prompt: content, agent: config.speaker });
      const names = (await registry.list()).filter(({ callable }) => callable).map(({ reference }) => reference);
      return { text, hidden, escape, names, found: (await registry.get("fs_read"))?.reference, missing: (await registry.get("hidden")) ?? null };
    },
  }],
};
`;

/** A hosted tool that reads the same file several times, and tells what each time came of it. */
const BUSY = `
export default {
  tools: [{
    name: "busy",
    inputSchema: { type: "object", properties: { times: { type: "integer" } }, required: ["times"] },
    async run({ times }, { registry }) {
      const told = [];
      for (let n = 0; n < times; n++) {
        told.push(await registry.call("fs_read", { path: "note.txt" }).then(({ content }) => content, (error) => error.message));
      }
      return told;
    },
  }],
};
`;

/** The same in Python. */
const READER = `# /// script
# dependencies = []
# ///
from toolbus_sdk import ToolError, call_tool

def busy_in_python(times: int) -> list:
    """Reads the same file several times."""
    told = []
    for _ in range(times):
        try:
            told.append(call_tool("fs_read", path="note.txt")["content"])
        except ToolError as error:
            told.append(str(error))
    return told
`;

let directory: string;
let suite: TestSuite;

beforeAll(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "toolbus-hosted-")));
  const data = join(directory, "data");
  const policy = { allowedPaths: [data] };
  const tools = { use: ["fs_read", "listing", "brief"] };
  const busyTools = { use: ["fs_read", "busy"] };
  const turnOf = (name: string) => ({ calls: [{ name, arguments: { times: 3 } }] });
  const [busyTurn, pythonTurn] = [turnOf("busy"), turnOf("busy_in_python")];
  const pythonTools = { use: ["fs_read", "@reader/*"], aliases: { busy_in_python: "@reader/busy_in_python" } };
  const model = (name: string) => ({ provider: "scripted", model: `${name}.json` });
  const calls = [
    { name: "fs_read", arguments: { path: "{{input}}" } },
    { name: "listing", arguments: { argv: ["ls"] } },
    { name: "brief", arguments: { path: "{{input}}" } },
  ];
  const text = "{{result.fs_read.content}}, {{result.listing.stdout}}, {{result.brief.text}}";
  const files: Record<string, unknown> = {
    "agents/clerk.json": { name: "clerk", model: model("clerk"), tools },
    "agents/spender.json": { name: "spender", model: model("spender"), tools: busyTools },
    "agents/pythonist.json": {
      ...{ name: "pythonist", model: model("pythonist"), tools: pythonTools },
      workers: [{ name: "reader" }],
    },
    "models/pythonist.json": { turns: [pythonTurn, pythonTurn, { text: "done" }] },
    "workers/reader.py": READER,
    "agents/speaker.json": { name: "speaker", model: model("speaker") },
    "models/clerk.json": { turns: [{ calls }, { text }] },
    "models/spender.json": { turns: [busyTurn, busyTurn, { text: "done" }] },
    "tools/busy.json": { name: "busy", executionType: "hosted" },
    "hosted/busy.mjs": BUSY,
    "models/speaker.json": { turns: [{ text: "in short: {{input}}" }] },
    "tools/fs_read.json": { name: "fs_read", kind: "builtin", builtinPolicy: policy },
    "tools/hidden.json": { name: "hidden", kind: "builtin", builtinPolicy: { name: "fs_read", allowedPaths: ["/"] } },
    "tools/listing.json": {
      name: "listing",
      kind: "builtin",
      builtinPolicy: { ...policy, name: "shell_exec", allowedCommands: ["ls"], timeout: 30_000 },
    },
    "tools/brief.json": { name: "brief", executionType: "hosted", config: { speaker: "speaker" } },
    "hosted/brief.mjs": BRIEF,
    "data/note.txt": "the note",
    "secret.txt": "what nobody may read",
  };
  await writeFiles(directory, files);
  suite = await openTestSuite({
    env: {
      TOOLBUS_AGENTS: join(directory, "agents"),
      TOOLBUS_TOOLS: join(directory, "tools"),
      TOOLBUS_SCRIPTS: join(directory, "models"),
      TOOLBUS_HOSTED: join(directory, "hosted"),
      TOOLBUS_WORKERS: join(directory, "workers"),
    },
  });
});
afterAll(async () => {
  await suite[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

it("ORCH-9 WORK-12 an agent's run reads a file, runs a command and calls a hosted tool, which uses the agent's tools and a model", async () => {
  await until(async () => (await clerksTools()).every(({ available, tool }) => available && tool?.description !== ""), {
    timeoutMs: 30_000,
    what: "the tools to be described",
  });
  const run = await runToEnd(suite.connection, { agent: "clerk", text: "note.txt" });
  expect(run.state).toBe(RunState.COMPLETED);
  expect(run.outputText).toBe("the note, note.txt\n, in short: the note");
  const brief = outputOf(run, "brief");
  expect(brief).toMatchObject({ found: "fs_read", missing: null });
  expect(brief.names).toEqual(expect.arrayContaining(["fs_read", "listing", "brief"]));
  expect(brief.hidden).toMatch(/not in tools\.use/);
  expect(brief.escape).toMatch(/is not below the allowed directories/);
});

const callers = [
  ["hosted tool", "spender", "busy"],
  ["Python tool", "pythonist", "busy_in_python"],
] as const;

it.each(callers)("LOOP-3 WORK-11 WORK-12 what a %s calls is bound by what its run allows", async (_, agent, tool) => {
  const options = { allowedTools: { names: [tool] } };
  const run = await runToEnd(suite.connection, { agent, text: "go", options });
  expect(run.state).toBe(RunState.COMPLETED);
  expect(outputOf(run, tool)).toEqual(Array(3).fill('tool "fs_read" is not in the allowed_tools list'));
});

it.each(callers)(
  "LOOP-1 WORK-11 WORK-12 what a %s calls counts in its run's max_tool_calls, and none goes on beyond it",
  async (_, agent, tool) => {
    const run = await runToEnd(suite.connection, {
      agent,
      text: "go",
      options: { limits: { maxToolCalls: 3 } },
    });
    expect(run).toMatchObject({ state: RunState.INCOMPLETE, endReason: RunEndReason.MAX_TOOL_CALLS, turnCount: 1 });
    expect(outputOf(run, tool)).toEqual(["the note", "the note", expect.stringContaining("max_tool_calls")]);
    const wide = await runToEnd(suite.connection, {
      agent,
      text: "go",
      options: { limits: { maxToolCalls: 8 } },
    });
    expect(wide).toMatchObject({ state: RunState.COMPLETED, turnCount: 3 });
  },
);

it("TOOL-1 what a catalogue's entry leaves out is as the worker pool describes it", async () => {
  const byName = new Map((await clerksTools()).map((one) => [one.reference, one.tool]));
  expect(JSON.parse(byName.get("fs_read")?.inputSchemaJson ?? "").required).toContain("path");
  expect(JSON.parse(byName.get("listing")?.inputSchemaJson ?? "").required).toContain("argv");
  expect(byName.get("brief")).toMatchObject({ description: "Sums up a file" });
  expect([...byName].map(([name, tool]) => [name, tool?.effect])).toEqual(
    expect.arrayContaining([
      ["fs_read", Effect.PURE],
      ["listing", Effect.AT_MOST_ONCE],
    ]),
  );
  expect(byName.has("hidden")).toBe(false);
  expect(byName.has("fs_write")).toBe(false);
});

it("ORCH-9 the policy is the catalogue's: nothing that the model says widens it", async () => {
  const { session } = await suite.connection.client(SessionService).createSession({ agent: "clerk" });
  const call = async (name: string, args: object) => {
    const request = { sessionId: session?.id ?? "", name, argumentsJson: JSON.stringify(args) };
    const events = await Array.fromAsync(suite.connection.client(ToolService).callTool(request));
    const last = events.at(-1)?.event;
    return last?.case === "result" ? last.value.outputJson : "";
  };
  expect(await call("fs_read", { path: join(directory, "secret.txt") })).toMatch(
    /is not below the allowed directories/,
  );
  expect(await call("fs_read", { path: "/etc/passwd", allowedPaths: ["/"] })).toMatch(/error/);
  expect(await call("listing", { argv: ["cat", "note.txt"] })).toMatch(/is not one of the allowed commands/);
  expect(await call("fs_write", { path: "x", content: "x" })).toMatch(/There is no tool|not in tools\.use/);
  expect(await call("shell_exec", { argv: ["ls"] })).toMatch(/There is no tool|not in tools\.use/);
  expect(await call("hidden", { path: "/etc/passwd" })).toMatch(/not in tools\.use/);
});

async function clerksTools() {
  const { tools } = await suite.connection.client(ToolService).listTools({ scope: { case: "agent", value: "clerk" } });
  return tools.filter(({ reference }) => ["fs_read", "listing", "brief", "hidden", "fs_write"].includes(reference));
}

function outputOf(run: Run, name: string): Record<string, unknown> {
  const items = run.items.map(({ item }) => item);
  const call = items.find((item) => item.case === "functionCall" && item.value.name === name);
  const id = call?.case === "functionCall" ? call.value.callId : "";
  const output = items.find((item) => item.case === "functionCallOutput" && item.value.callId === id);
  return output?.case === "functionCallOutput" ? JSON.parse(output.value.result?.outputJson ?? "{}") : {};
}

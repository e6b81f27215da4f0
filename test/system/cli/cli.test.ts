// The command `toolbus` as people and scripts meet it: a process, its output and its exit code.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService, ListAgentsResponseSchema, StoredAgentSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { RunState, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { CreateRunResponseSchema, WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import {
  CallToolResultSchema,
  ExplainToolResponseSchema,
  ListToolsResponseSchema,
} from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { plainAgent } from "../../harness/agents/plain-run.ts";
import { commandsAt, firstIn, messagesIn } from "../../harness/commands/commands-at.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const stack = new AsyncDisposableStack();
let suite: TestSuite;
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ env: plainAgent }));
});
afterAll(() => stack.disposeAsync());

const { toolbus, toolbusWith } = commandsAt(() => suite.url);

describe("tools and calls", () => {
  it("lists tools: of the catalogue, and of an agent", async () => {
    const all = await toolbus("tools");
    expect(all).toMatchObject({ exitCode: 0, stderr: "" });
    expect(all.stdout).toMatch(/^NAME +REFERENCE +KIND +STATE +DESCRIPTION\n/);
    expect(all.stdout).toMatch(/^ask .* space /m);
    const own = await toolbus("tools", "--agent", "plain", "--json");
    const { tools } = firstIn(ListToolsResponseSchema, own.stdout);
    const callable = tools.filter((tool) => tool.callable).map((tool) => tool.modelName);
    expect(callable).toContain("repeat");
    expect(callable).not.toContain("ask");
  });

  it("says why a tool cannot be called where it lists what the others do", async () => {
    const agent = { name: "narrow", tools: { use: ["repeat", "ask"], allowed: { names: ["repeat"] } } };
    await suite.connection.client(AgentService).applyAgent({ agent });
    const { stdout } = await toolbus("tools", "--agent", "narrow");
    expect(stdout).toMatch(/^ask +ask +space +not callable +Agent "narrow" may not call tool "ask": /m);
    expect(stdout).toMatch(/^repeat +repeat +\w+ +callable {6}\w/m);
  });

  it("explains why a tool can be called, and why not", async () => {
    const good = await toolbus("explain", "plain", "repeat");
    expect(good.stdout).toMatch(/^✓ use/m);
    expect(good.stdout).toMatch(/\ncallable by plain\n$/);
    const bad = await toolbus("explain", "plain", "ask");
    expect(bad.stdout).toMatch(/^✗ use/m);
    expect(bad.stdout).toMatch(/\nnot callable by plain: .+\n$/);
    const { callable } = firstIn(
      ExplainToolResponseSchema,
      (await toolbus("explain", "plain", "ask", "--json")).stdout,
    );
    expect(callable).toBe(false);
  });

  it("calls a tool, its arguments given or read from standard input", async () => {
    const given = await toolbus("call", "repeat", '{"text":"hi"}', "--agent", "plain");
    expect(given).toMatchObject({ exitCode: 0, stderr: "" });
    expect(JSON.parse(given.stdout)).toMatchObject({ args: { text: "hi" } });
    const read = await toolbusWith({ input: '{"text":"höh\\n"}' }, "call", "repeat", "-", "-a", "plain", "--json");
    expect(read).toMatchObject({ exitCode: 0 });
    const { outputJson } = firstIn(CallToolResultSchema, read.stdout);
    expect(JSON.parse(outputJson)).toMatchObject({ args: { text: "höh\n" } });
  });

  it("calls a tool that a person answers, in the space that is named", async () => {
    const without = await toolbus("call", "ask", '{"question":"May I?"}', "-a", "asker");
    expect(without.exitCode).toBe(1);
    expect((await toolbus("spaces", "create", "office")).exitCode).toBe(0);
    const call = toolbus("call", "ask", '{"question":"May I?"}', "-a", "asker", "--space", "office");
    const answer = async () => {
      const waits = /toolbus (answer office \S+)/.exec((await toolbus("answers")).stdout)?.[1];
      return waits?.split(" ");
    };
    const command = await until(answer, { timeoutMs: 30_000, what: "the question to wait" });
    expect((await toolbus(...command, '{"answer":"Yes"}')).exitCode).toBe(0);
    expect(await call).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("Yes") });
  });

  it("SEC-2 a link lets somebody else answer one call, by a key that does nothing else", async () => {
    expect((await toolbus("spaces", "create", "office")).exitCode).toBe(0);
    const call = toolbus("call", "ask", '{"question":"And I?"}', "-a", "asker", "--space", "office");
    const callId = await until(
      async () => /toolbus answer office (\S+)/.exec((await toolbus("answers")).stdout)?.[1] ?? undefined,
      { timeoutMs: 30_000, what: "the question to wait" },
    );
    const made = await toolbus("answers", "link", callId, "--expires", "1d", "--json");
    const { link, key, expireTime } = JSON.parse(made.stdout);
    expect(link).toMatch(new RegExp(`/#/inbox/${callId}$`));
    expect(Date.parse(expireTime) - Date.now()).toBeGreaterThan(86_000_000);
    const by = ["--api-key", key];
    const other = await toolbus("runs", ...by);
    expect(other).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("is not for a key of one call") });
    expect((await toolbus("calls", "submit", callId, '{"answer":"You too"}', ...by)).exitCode).toBe(0);
    expect(await call).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("You too") });
    const wrong = await toolbus("answers", "link", callId);
    expect(wrong).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("already resolved") });
  });

  it("a tool's error is its output, and exits with 1", async () => {
    const refused = await toolbus("call", "repeat", "{}", "--agent", "plain");
    expect(JSON.parse(refused.stdout)).toEqual({
      error: expect.stringContaining("must have required property 'text'"),
    });
    expect(refused).toMatchObject({ exitCode: 1, stderr: "" });
    const unknown = await toolbus("call", "nothing", "--agent", "plain", "--json");
    expect(firstIn(CallToolResultSchema, unknown.stdout).isError).toBe(true);
    expect(unknown.exitCode).toBe(1);
  });
});

describe("runs", () => {
  it("shows a run to its end", async () => {
    const { exitCode, stdout, stderr } = await toolbus("run", "plain", "hello", "world");
    expect(stdout).toContain('→ repeat {"text":"hello world"}\n✓ ');
    expect(stdout).toMatch(/I heard hello world\.\ncompleted \(final_answer\)\n$/);
    expect(stderr).toMatch(/^run \S+ in session \S+\n$/);
    expect(exitCode).toBe(0);
  });

  it("as JSON: each line is an update in the contract's form, and the last one is the end", async () => {
    const { exitCode, stdout } = await toolbus("run", "plain", "hello", "--json");
    const events = messagesIn(WatchRunResponseSchema, stdout).flatMap(({ update }) =>
      update.case === "event" ? [update.value.event] : [],
    );
    expect(events[0]?.case).toBe("accepted");
    expect(events.at(-1)).toMatchObject({ case: "ended", value: { state: RunState.COMPLETED } });
    expect(exitCode).toBe(0);
  });

  it("detached: prints the run, which `watch run` follows from its beginning; a second one goes on in its session", async () => {
    const started = await toolbus("run", "plain", "first", "--detach");
    const { run } = firstIn(CreateRunResponseSchema, started.stdout);
    const [id, sessionId] = [run?.id ?? "", run?.sessionId ?? ""];
    const watched = await toolbus("watch", "run", id);
    expect(watched.stdout).toMatch(/^→ repeat .*\n✓ .*\nI heard first\.\ncompleted \(final_answer\)\n$/);
    expect(watched.exitCode).toBe(0);
    const again = await toolbus("run", "plain", "second", "--session", sessionId, "--json", "--detach");
    expect(firstIn(CreateRunResponseSchema, again.stdout).run).toMatchObject({ sessionId });
    const other = await toolbus("run", "another", "third", "--session", sessionId, "--detach");
    expect(other).toMatchObject({ exitCode: 2, stdout: "" });
    expect(other.stderr).toContain("has agent plain, not another");
  });

  it("a limit ends a run, which exits with 1, and so does watching it", async () => {
    const limited = await toolbus("run", "plain", "hello", "--max-turns", "1");
    expect(limited.stdout).toMatch(/\nincomplete \(max_turns\)\n$/);
    expect(limited.exitCode).toBe(1);
    const id = /^run (\S+)/.exec(limited.stderr)?.[1] ?? "";
    expect(await toolbus("watch", "run", id)).toMatchObject({ exitCode: 1, stdout: limited.stdout });
  });

  it("narrowed to other tools, the agent's own is refused", async () => {
    const { stdout } = await toolbus("run", "plain", "hello", "--allow", "enter_space", "send_message");
    expect(stdout).toMatch(/^✗ /m);
  });

  it.each([
    ["none", { case: "mode", value: ToolChoiceMode.NONE }],
    ["repeat", { case: "forcedTool", value: "repeat" }],
  ])("the tool choice %s goes with the run", async (text, choice) => {
    const { stdout } = await toolbus("run", "plain", "hello", "--tool-choice", text, "--json");
    const [accepted] = messagesIn(WatchRunResponseSchema, stdout);
    expect(accepted?.update).toMatchObject({ value: { event: { value: { options: { toolChoice: { choice } } } } } });
  });
});

describe("agents", () => {
  it("lists them, and shows one", async () => {
    const { exitCode, stdout } = await toolbus("agents");
    expect(stdout).toMatch(/^NAME +MODEL +FROM +STATE +DESCRIPTION\n/);
    expect(stdout).toMatch(/^plain +scripted:plain\.json +plain\.json /m);
    expect(exitCode).toBe(0);
    const listed = await toolbus("agents", "list", "--json");
    expect(firstIn(ListAgentsResponseSchema, listed.stdout).agents.map(({ agent }) => agent?.name)).toContain("asker");
    const shown = await toolbus("agents", "show", "plain");
    expect(firstIn(StoredAgentSchema, shown.stdout).agent?.tools?.use).toEqual(["repeat"]);
  });

  it("applies one in the contract's form: checked, created, run, deleted", async () => {
    const directory = await mkdtemp(join(suite.directory, "agents-"));
    const file = join(directory, "further.json");
    const agent = { name: "further", model: { provider: "scripted", model: "plain.json" }, tools: { use: ["repeat"] } };
    await writeFile(file, JSON.stringify(agent));
    expect(await toolbus("agents", "apply", file, "--dry-run")).toMatchObject({ stdout: "further is valid\n" });
    expect(await toolbus("agents", "show", "further"), "only checked").toMatchObject({ exitCode: 1 });
    expect(await toolbus("agents", "apply", file)).toMatchObject({ exitCode: 0, stdout: "further applied\n" });
    expect(await toolbus("run", "further", "hi")).toMatchObject({ exitCode: 0 });
    const { revision } = firstIn(StoredAgentSchema, (await toolbus("agents", "show", "further")).stdout);
    for (const [expected, reason] of [
      ["0", "it was expected not to exist yet"],
      [`${revision + 1n}`, `stands at revision ${revision}`],
    ] as const) {
      const refused = await toolbus("agents", "apply", file, "--revision", expected);
      expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(reason) });
    }
    expect(await toolbus("agents", "apply", file, "--revision", `${revision}`)).toMatchObject({ exitCode: 0 });
    const deleted = await toolbus("agents", "delete", "further", "--revision", `${revision}`);
    expect(deleted).toMatchObject({ exitCode: 0, stdout: "further deleted\n" });
    expect(await toolbus("agents", "show", "further")).toMatchObject({ exitCode: 1 });
    await rm(directory, { recursive: true });
  });

  it.each(["assistant", "demo"])("applies the example %s as it stands", async (name) => {
    const { exitCode, stderr } = await toolbus("agents", "apply", `examples/agents/${name}.json`);
    expect(exitCode).toBe(0);
    expect(stderr).not.toContain("toolbus:");
    const { agent } = firstIn(StoredAgentSchema, (await toolbus("agents", "show", name)).stdout);
    expect(agent?.sources.map((source) => source.name)).toEqual(["everything", "qr"]);
  });

  it("refuses a file that is no agent, and an agent that cannot work, with what is wrong", async () => {
    const directory = await mkdtemp(join(suite.directory, "agents-"));
    const write = async (name: string, content: object) => {
      await writeFile(join(directory, name), JSON.stringify(content));
      return join(directory, name);
    };
    const slip = await write("slip.json", { name: "slip", tool: {} });
    const slipped = await toolbus("agents", "apply", slip);
    expect(slipped.stderr).toMatch(/slip\.json is no agent: .*"tool"/);
    expect(slipped.exitCode).toBe(2);
    const model = { provider: "scripted", model: "plain.json" };
    const tools = { use: ["repeat"], aliases: { repeat: "ask" } };
    const mcp = { servers: [{ name: "m", url: "http://127.0.0.1:1/mcp", transport: "htpp" }] };
    const file = { name: "faulty", model, tools, mcp, sources: [{ name: "s", provider: "nobody" }] };
    const faulty = await toolbus("agents", "apply", await write("faulty.json", file));
    expect(faulty.stderr).toMatch(
      / sources\[0\]\.provider: there is no .* mcp\.servers\[0\]\.transport: "htpp" is none/,
    );
    expect(faulty.stderr).toContain("tools.aliases.repeat: repeat is the name of a tool");
    expect(faulty.exitCode).toBe(2);
    await rm(directory, { recursive: true });
  });
});

// The command `toolbus` as people and scripts meet it: a process, its output and its exit code.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type DescMessage, fromJsonString, type MessageShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AuditEventSchema, AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { CreateRunResponseSchema, WatchRunResponseSchema } from "#gen/toolbus/orchestrator/v1/run_service_pb.ts";
import { ListAgentsResponseSchema, StoredAgentSchema } from "#gen/toolbus/router/v1/agents_pb.ts";
import { WatchAuditResponseSchema } from "#gen/toolbus/router/v1/audit_pb.ts";
import { SessionService } from "#gen/toolbus/router/v1/sessions_pb.ts";
import { ExplainToolResponseSchema, ListToolsResponseSchema } from "#gen/toolbus/router/v1/tool_router_pb.ts";
import { RunStatus } from "#gen/toolbus/run/v1/run_pb.ts";
import { SpaceService, WatchSpaceResponseSchema } from "#gen/toolbus/spaces/v1/spaces_pb.ts";
import { ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { until as untilWithin } from "#runtime/time/until.ts";
import { openSuite } from "../../cli/suite/suite.ts";
import { type CommandOptions, type Ending, runCommand, type StartedCommand, startCommand } from "../harness/command.ts";
import { plainAgent } from "../harness/plain-run.ts";
import { openTestSuite, type TestSuite } from "../harness/suite.ts";

const stack = new AsyncDisposableStack();
let suite: TestSuite;
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ env: plainAgent }));
});
afterAll(() => stack.disposeAsync());

const toolbus = (...args: string[]): Promise<Ending> => runCommand(["--url", suite.url, ...args]);
const toolbusWith = (options: CommandOptions, ...args: string[]) => runCommand(["--url", suite.url, ...args], options);

/** Commands are processes that start, which a busy machine makes slow. */
const until: typeof untilWithin = (condition, options) => untilWithin(condition, { timeoutMs: 30_000, ...options });

const follow = (...args: string[]): StartedCommand => startCommand(["--url", suite.url, ...args]);

/** Each line of the output, which is the contract's JSON form of a message. Throws for any other. */
function messagesIn<D extends DescMessage>(schema: D, text: string): MessageShape<D>[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => fromJsonString(schema, line));
}

function firstIn<D extends DescMessage>(schema: D, text: string): MessageShape<D> {
  const [first, ...more] = messagesIn(schema, text);
  if (first === undefined || more.length > 0) throw new Error(`expected one line: ${text}`);
  return first;
}

describe("who asks for what does not fit is told so, and exits with 2", () => {
  it.each([
    [["call"], "missing required argument 'tool'"],
    [["run", "plain"], "missing required argument 'input'"],
    [["nothing"], "unknown command 'nothing'"],
    [["tools", "--nothing"], "unknown option '--nothing'"],
    [["call", "repeat", "{bad", "--agent", "plain"], "the arguments are not JSON: "],
    [["call", "repeat", "{}"], "say on whose behalf: --agent NAME or --session ID"],
    [["run", "plain", "hi", "--max-turns", "0"], "expected a whole number above 0"],
    [["run", "plain", "hi", "--tool-choice", ""], "--tool-choice needs a value"],
    [["answer", "room", "call"], "give either an answer as JSON or --refuse WHY"],
    [["answer", "room", "call", "true", "--refuse", "no"], "give either an answer as JSON or --refuse WHY"],
    [["agents", "apply", "nothing.json"], "nothing.json is no agent: ENOENT"],
    [["serve", "nothing"], "Allowed choices are caller-relay, gateway, mcp-bridge, orchestrator, spaces,"],
    [["up", "--only", "nothing"], "Allowed choices are caller-relay, gateway, mcp-bridge, orchestrator, spaces,"],
    [["up", "--port", "70000"], "expected 0 to 65535"],
    [["up", "--nats", "nats://me:secret@127.0.0.1:x"], "expected a URL like nats://127.0.0.1:4222"],
    [["--url", "nothing", "tools"], "expected one like http://127.0.0.1:7480"],
  ])("%j", async (args, message) => {
    const { exitCode, stdout, stderr } = await toolbus(...args);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("secret");
    expect(stdout).toBe("");
    expect(exitCode).toBe(2);
  });
});

describe("who asks for what does not exist is told so, and exits with 1", () => {
  it.each([
    [["tools", "--agent", "nobody"], 'there is no agent "nobody"'],
    [["run", "nobody", "hi"], 'there is no agent "nobody"'],
    [["call", "repeat", "{}", "--agent", "nobody"], 'there is no agent "nobody"'],
    [["explain", "nobody", "repeat"], 'there is no agent "nobody"'],
    [["agents", "show", "nobody"], 'there is no agent "nobody"'],
    [["agents", "delete", "nobody"], 'there is no agent "nobody"'],
    [["watch", "run", "nothing"], "there is no run nothing"],
    [["watch", "space", "nowhere"], 'no space "nowhere"'],
    [["answer", "nowhere", "call", "true"], 'no space "nowhere"'],
  ])("%j", async (args, message) => {
    const { exitCode, stdout, stderr } = await toolbus(...args);
    expect(stderr).toContain(`toolbus: ${message}`);
    expect(stderr.trim().split("\n"), "no trace of the stack").toHaveLength(1);
    expect(stdout).toBe("");
    expect(exitCode).toBe(1);
  });
});

describe("the address", () => {
  it("where nothing answers: says so and how to start the suite, and exits with 3", async () => {
    const { exitCode, stderr } = await runCommand(["--url", "http://127.0.0.1:9", "tools"]);
    expect(stderr).toBe(
      'toolbus: nothing answers at http://127.0.0.1:9. Start the suite with "toolbus up", or name its address with --url.\n',
    );
    expect(exitCode).toBe(3);
  });

  it("where something else answers: says so, and exits with 3", async () => {
    const page = createServer((_, response) => response.end("hello")).listen(0, "127.0.0.1");
    const url = await until(() => page.listening && `http://127.0.0.1:${(page.address() as AddressInfo).port}`);
    const { exitCode, stderr } = await runCommand(["--url", url, "tools"]);
    page.close();
    expect(stderr).toBe(
      `toolbus: what answers at ${url} is no gateway of toolbus. Name the gateway's address with --url.\n`,
    );
    expect(exitCode).toBe(3);
  });

  it("may come from TOOLBUS_URL", async () => {
    expect(await runCommand(["agents"], { env: { TOOLBUS_URL: suite.url } })).toMatchObject({ exitCode: 0 });
    const { exitCode, stderr } = await runCommand(["agents"], { env: { TOOLBUS_URL: "nothing" } });
    expect(stderr).toContain("TOOLBUS_URL");
    expect(exitCode).toBe(2);
  });

  it("of a gateway that wants keys: a refused key says how to give one, and a good one opens", async () => {
    const key = "0123456789abcdef";
    const directory = join(suite.directory, "second");
    const env = { TOOLBUS_API_KEYS: `alice:${key}` };
    const { user, password } = suite.nats;
    const natsUrl = suite.nats.url.replace("://", `://${user}:${password}@`);
    await using locked = await openSuite({ directory, port: 0, rooms: ["gateway"], natsUrl, env });
    const ask = (...args: string[]) => runCommand(["--url", locked.url, "agents", ...args]);
    for (const { exitCode, stderr } of [await ask(), await ask("--api-key", "another-key-of-some")]) {
      expect(stderr).toContain("Give a key with --api-key or TOOLBUS_API_KEY.");
      expect(stderr).not.toContain("another-key-of-some");
      expect(exitCode).toBe(1);
    }
    expect(await ask("--api-key", key)).toMatchObject({ exitCode: 0, stderr: "" });
    const fromEnvironment = { env: { TOOLBUS_API_KEY: key } };
    expect(await runCommand(["--url", locked.url, "agents"], fromEnvironment)).toMatchObject({ exitCode: 0 });
  });
});

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
    const { outputJson } = firstIn(ToolResultSchema, read.stdout);
    expect(JSON.parse(outputJson)).toMatchObject({ args: { text: "höh\n" } });
  });

  it("a tool's error is its output, and exits with 1", async () => {
    const refused = await toolbus("call", "repeat", "{}", "--agent", "plain");
    expect(JSON.parse(refused.stdout)).toEqual({
      error: expect.stringContaining("must have required property 'text'"),
    });
    expect(refused).toMatchObject({ exitCode: 1, stderr: "" });
    const unknown = await toolbus("call", "nothing", "--agent", "plain", "--json");
    expect(firstIn(ToolResultSchema, unknown.stdout).isError).toBe(true);
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
    expect(events.at(-1)).toMatchObject({ case: "ended", value: { status: RunStatus.COMPLETED } });
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
    ["none", { case: "mode", value: "none" }],
    ["repeat", { case: "forcedTool", value: "repeat" }],
  ])("the tool choice %s goes with the run", async (text, choice) => {
    const { stdout } = await toolbus("run", "plain", "hello", "--tool-choice", text, "--json");
    const [accepted] = messagesIn(WatchRunResponseSchema, stdout);
    expect(accepted?.update).toMatchObject({ value: { event: { value: { options: { toolChoice: { choice } } } } } });
  });
});

describe("what happens, as it happens", () => {
  it("a run waits for a person: `watch space` shows the question, `answer` answers it, and the run goes on", async () => {
    await suite.connection.client(SpaceService).createSpace({ spaceId: "office", title: "Office" });
    await using space = follow("watch", "space", "office");
    await using events = follow("watch", "space", "office", "--json");
    await using run = follow("run", "asker", "office");
    const asked = /waits for an answer asker ask\(\{"question":"Shall it be\?"\}\) (\S+)/;
    const callId = await until(() => asked.exec(space.written.stdout)?.[1], { what: "the question in the space" });
    const soFar = /^I go and ask\.\n→ enter_space .*\n✓ .*\n→ ask /;
    await until(() => soFar.test(run.written.stdout), { what: "text and calls so far" });

    expect(await toolbus("answer", "office", callId, "{bad")).toMatchObject({ exitCode: 2, stdout: "" });
    const answered = await toolbus("answer", "office", callId, '{"word":"yes"}');
    expect(answered).toMatchObject({ exitCode: 0, stdout: `answered ${callId}\n`, stderr: "" });
    expect(await run.ended).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("I was told yes.\n") });
    await until(() => space.written.stdout.includes("tool.done"), { what: "the answer in the space" });
    const kinds = await until(() => {
      const seen = messagesIn(WatchSpaceResponseSchema, events.written.stdout).map(({ event }) => event?.event.case);
      return seen.includes("toolDone") && seen;
    });
    expect(kinds).toContain("toolRequiresAction");
  });

  it("`spaces` creates, lists, shows and speaks in spaces, and `inbox` shows what an agent will read of it", async () => {
    expect(await toolbus("spaces", "create", "hall", "--title", "The hall")).toMatchObject({ exitCode: 0 });
    await suite.connection.client(SessionService).createSession({ sessionId: "listener", agent: "plain" });
    await suite.connection.client(SpaceService).enterSpace({ sessionId: "listener", agent: "former", spaceId: "hall" });
    await using inbox = follow("inbox", "listener", "--agent", "former", "--follow"); // which no run of it takes away
    await using space = follow("spaces", "watch", "hall");
    const sent = await toolbus("spaces", "send", "hall", "Is anybody here?", "--as", "Eve");
    expect(sent).toMatchObject({ exitCode: 0, stdout: "Eve: Is anybody here?\n", stderr: "" });
    await until(() => inbox.written.stdout.startsWith('[Eve: "Is anybody here?"] msg:hall:'), { what: "the inbox" });
    await until(() => space.written.stdout.includes("Eve joined\nEve: Is anybody here?\n"), { what: "the space" });
    expect((await toolbus("spaces")).stdout).toMatch(/^hall +former, Eve +The hall$/m);
    const shown = await toolbus("spaces", "show", "hall");
    expect(shown.stdout).toBe("hall The hall\nformer, Eve · 1 of 1 messages\nEve: Is anybody here?\n");
    const unknown = await toolbus("spaces", "show", "nowhere");
    expect(unknown).toMatchObject({
      exitCode: 1,
      stdout: "",
      stderr: expect.stringMatching(/no space "nowhere".*hall/),
    });
    expect(await toolbus("inbox", "listener")).toMatchObject({ exitCode: 0, stdout: "" });
  });

  it("a person may refuse, which is the tool's error", async () => {
    await suite.connection.client(SpaceService).createSpace({ spaceId: "closed" });
    await using events = follow("watch", "space", "closed", "--json");
    await using run = follow("run", "asker", "closed");
    const callId = await until(() => /"toolRequiresAction".*"callId":"([^"]+)"/.exec(events.written.stdout)?.[1]);
    expect(await toolbus("answer", "closed", callId, "--refuse", "not today")).toMatchObject({ exitCode: 0 });
    expect((await run.ended).stdout).toMatch(/^✗ .*not today/m);
  });

  it("`watch audit` shows what the suite decides, of one agent if asked", async () => {
    await using all = follow("watch", "audit", "--json");
    await using own = follow("watch", "audit", "--agent", "asker");
    await until(async () => {
      await toolbus("call", "repeat", '{"text":"hi"}', "--agent", "plain");
      await toolbus("call", "repeat", '{"text":"hi"}', "--agent", "asker");
      const hasBoth = [/"agent":"plain".*\n/, /"agent":"asker".*\n/].every((line) => line.test(all.written.stdout));
      return hasBoth && own.written.stdout !== "";
    });
    const whole = all.written.stdout.slice(0, all.written.stdout.lastIndexOf("\n"));
    const decided = messagesIn(WatchAuditResponseSchema, whole).map(({ event }) => [event?.agent, event?.kind]);
    expect(decided).toContainEqual(["plain", AuditKind.PERMITTED]);
    expect(decided).toContainEqual(["asker", AuditKind.BLOCKED]);
    expect(own.written.stdout).toMatch(/^\S+Z {2}blocked +tool-router {2}agent asker, session \S+, tool repeat {2}/);
    expect(own.written.stdout).not.toContain("plain");
  });

  it("ORCH-11 `audit` lists what was decided, by agent, kind, tool and time, and goes on with what comes", async () => {
    const blocked = ["audit", "--agent", "asker", "--kind", "blocked", "--tool", "repeat"];
    await toolbus("call", "repeat", '{"text":"hi"}', "--agent", "asker");
    const list = await until(async () => {
      const told = await toolbus(...blocked, "--since", "1h", "--json");
      return told.stdout !== "" && told;
    });
    for (const event of messagesIn(AuditEventSchema, list.stdout)) {
      expect(event).toMatchObject({
        agent: "asker",
        kind: AuditKind.BLOCKED,
        tool: "repeat",
        rule: "not in tools.use",
      });
    }
    expect(await toolbus(...blocked, "--since", "2099-01-01")).toMatchObject({ exitCode: 0, stdout: "" });
    expect((await toolbus("audit", "--limit", "1")).stdout.split("\n")).toHaveLength(2);
    await using followed = follow(...blocked, "--limit", "1", "--follow");
    await until(async () => {
      await toolbus("call", "repeat", '{"text":"hi"}', "--agent", "asker");
      return followed.written.stdout.split("\n").length > 3;
    });
    const lines = followed.written.stdout.trimEnd().split("\n");
    expect(lines.every((line) => / blocked +tool-router {2}agent asker, .*tool repeat/.test(line))).toBe(true);
    expect(new Set(lines).size).toBe(lines.length);
    expect(await toolbus("audit", "--kind", "nonsense")).toMatchObject({ exitCode: 2 });
    expect(await toolbus("audit", "--since", "yesterday")).toMatchObject({ exitCode: 2 });
  });

  it("a reader that has enough is no fault", async () => {
    await using events = follow("watch", "audit", "--json");
    const makeNews = () => toolbus("call", "repeat", '{"text":"hi"}', "--agent", "plain");
    await until(async () => (await makeNews()) && events.written.stdout !== "");
    events.stopReading();
    let isOver = false;
    void events.ended.then(() => {
      isOver = true;
    });
    await until(async () => (await makeNews()) && isOver);
    expect(await events.ended).toMatchObject({ exitCode: 0, stderr: "" });
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
    expect(await toolbus("agents", "delete", "further")).toMatchObject({ exitCode: 0, stdout: "further deleted\n" });
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
    const faulty = await toolbus("agents", "apply", await write("faulty.json", { name: "faulty", model, tools }));
    expect(faulty.stderr).toContain("tools.aliases.repeat: repeat is the name of a tool");
    expect(faulty.exitCode).toBe(2);
    await rm(directory, { recursive: true });
  });
});

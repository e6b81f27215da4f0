// ORCH-1 through the whole suite: what belongs to one agent of a session is out of reach for the next one.

import { fileURLToPath } from "node:url";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { Role, RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { type CreateRunRequestSchema, InputItemSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { Carry } from "#gen/toolbus/session/v1/session_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { MemoryService } from "#gen/toolbus/space/v1/memory_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until as untilWithin } from "#runtime/time/until.ts";
import { type Ending, runCommand, startCommand } from "../../harness/commands/command.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const scripts = fileURLToPath(new URL("../fixtures/switching", import.meta.url));
const server = fileURLToPath(new URL("../../faults/switch/testing/whose-server.ts", import.meta.url));

const stack = new AsyncDisposableStack();
let suite: TestSuite;
beforeAll(async () => {
  const env = { TOOLBUS_SCRIPTS: scripts, TOOLBUS_MCP_STARTUP_TIMEOUT: "30s" };
  suite = stack.use(await openTestSuite({ env }));
  for (const name of ["left", "right", "slow"]) {
    const source = {
      name: `${name}-files`,
      provider: "mcp",
      config: { command: process.execPath, args: [server, name] },
    };
    const tools = { use: [`@${name}-files/*`], aliases: { mine: `@${name}-files/whose` } };
    const model = { provider: "scripted", model: `${name}.json` };
    await clientOf(AgentService).applyAgent({ agent: { name, model, sources: [source], tools } });
  }
});
afterAll(() => stack.disposeAsync());

const until: typeof untilWithin = (condition, options) => untilWithin(condition, { timeoutMs: 30_000, ...options });
const clientOf: TestSuite["connection"]["client"] = (service) => suite.connection.client(service);

async function openSession(agent: string): Promise<string> {
  return (await clientOf(SessionService).createSession({ agent })).session?.id ?? "";
}

/** What a call answers, or the error that its result is. */
async function call(sessionId: string, name: string, args: object = {}): Promise<unknown> {
  let output: unknown;
  const request = { sessionId, name, argumentsJson: JSON.stringify(args) };
  for await (const { event } of clientOf(ToolService).callTool(request)) {
    if (event.case === "result") output = JSON.parse(event.value.outputJson);
  }
  return output;
}

async function startRun(sessionId: string, options: MessageInitShape<typeof CreateRunRequestSchema>["options"] = {}) {
  const input = [
    create(InputItemSchema, { item: { case: "message", value: { role: Role.USER, content: textContent("go") } } }),
  ];
  return (await clientOf(RunService).createRun({ sessionId, input, options })).run?.id ?? "";
}

const runOf = async (runId: string) => (await clientOf(RunService).getRun({ runId })).run;

describe("ORCH-1 after a switch", () => {
  it("no tool and no MCP connection of the old agent is reached, by any of its names", async () => {
    const sessionId = await openSession("left");
    expect(await call(sessionId, "mine")).toMatchObject({ agent: "left" });
    const connections = async () => (await clientOf(McpServerService).listConnections({ sessionId })).connections;
    expect((await connections()).map(({ agent }) => agent)).toEqual(["left"]);
    await clientOf(SessionService).switchAgent({ sessionId, agent: "right" });
    for (const name of ["left-files__whose", "@left-files/whose"]) {
      expect(await call(sessionId, name)).toEqual({ error: expect.stringContaining(name) });
    }
    expect(await call(sessionId, "mine")).toMatchObject({ agent: "right" });
    expect((await connections()).map(({ agent }) => agent)).toEqual(["right"]);
    await clientOf(SessionService).closeSession({ sessionId });
    expect(await connections()).toEqual([]);
  });

  it("memory and the active space of the old agent stay with it, and are there when it comes back", async () => {
    const sessionId = await openSession("left");
    const { sessions, spaces, memory } = {
      sessions: clientOf(SessionService),
      spaces: clientOf(SpaceService),
      memory: clientOf(MemoryService),
    };
    const { space } = await spaces.createSpace({ title: "Room" });
    await call(sessionId, "enter_space", { space_id: space?.id ?? "" });
    await call(sessionId, "set_goals", { entries: [{ key: "secret", text: "only the left one knows" }] });
    const textsOf = async (agent: string) =>
      (await memory.listEntries({ sessionId, agent })).entries.map(({ text }) => text);
    await until(async () => (await textsOf("left")).includes("only the left one knows"));
    await sessions.switchAgent({ sessionId, agent: "right" });
    expect(await textsOf("right")).toEqual([]);
    expect((await spaces.getActiveSpace({ sessionId })).spaceId).toBe("");
    expect(JSON.stringify(await call(sessionId, "send_message", { text: "hello" }))).toContain("error");
    await sessions.switchAgent({ sessionId, agent: "left" });
    expect(await textsOf("left")).toEqual(["only the left one knows"]);
    expect((await spaces.getActiveSpace({ sessionId })).spaceId).toBe(space?.id);
  });

  it("a parked run of the old agent is canceled, and the next one is the other agent's, in the same session", async () => {
    const sessionId = await openSession("left");
    const parked = await startRun(sessionId, { functionTools: [{ name: "ask_client" }] });
    await until(async () => {
      const run = await runOf(parked);
      if (run?.error) throw new Error(run.error);
      return run?.state === RunState.REQUIRES_ACTION;
    });
    await clientOf(SessionService).switchAgent({ sessionId, agent: "right" });
    expect(await runOf(parked)).toMatchObject({ state: RunState.CANCELED, endReason: RunEndReason.AGENT_SWITCHED });
    const next = await startRun(sessionId);
    const ended = await until(async () => {
      const run = await runOf(next);
      return run?.state === RunState.COMPLETED && run;
    });
    expect(ended).toMatchObject({ agent: "right", outputText: "I am the right one." });
    const { runs } = await clientOf(RunService).listRuns({ sessionId });
    expect(runs.map(({ id, agent }) => [id, agent])).toEqual([
      [next, "right"],
      [parked, "left"],
    ]);
  });

  it("the tools of the session's caller stay, and are the other agent's too", async () => {
    const sessionId = await openSession("left");
    const declaration = { callerId: "app", tools: [{ name: "notify" }] };
    await clientOf(CallerService).declareTools({ sessionId, declaration });
    const ofCaller = async () => {
      const { agent, tools } = await clientOf(ToolService).listTools({
        scope: { case: "session", value: { sessionId } },
      });
      return [agent, ...tools.map(({ modelName }) => modelName).filter((name) => name.startsWith("app_"))];
    };
    expect(await ofCaller()).toEqual(["left", "app_notify"]);
    await clientOf(SessionService).switchAgent({ sessionId, agent: "right" });
    expect(await ofCaller()).toEqual(["right", "app_notify"]);
  });

  it("a run in the middle of a call keeps its result and ends as canceled by itself", async () => {
    const sessionId = await openSession("slow");
    const running = await startRun(sessionId);
    await until(async () => (await runOf(running))?.turnCount === 1);
    await clientOf(SessionService).switchAgent({ sessionId, agent: "right", drainTimeout: durationFromMs(30_000) });
    const ended = await until(async () => {
      const run = await runOf(running);
      return run?.state === RunState.CANCELED && run;
    });
    expect(ended).toMatchObject({ endReason: RunEndReason.AGENT_SWITCHED, turnCount: 1 });
    const results = ended.items.flatMap(({ item }) => (item.case === "functionCallOutput" ? [item.value.result] : []));
    expect(results.map((result) => result?.isError)).toEqual([false]);
  });
});

describe("ORCH-1 the conversation after a switch", () => {
  /** Lets the session's agent answer, and gives what it said. */
  async function say(sessionId: string, text: string, more: object = {}): Promise<{ id: string; answer: string }> {
    const input = [
      create(InputItemSchema, { item: { case: "message", value: { role: Role.USER, content: textContent(text) } } }),
    ];
    const { run } = await clientOf(RunService).createRun({ sessionId, input, ...more });
    return { id: run?.id ?? "", answer: await answerOf(run?.id ?? "") };
  }

  async function answerOf(runId: string): Promise<string> {
    const ended = await until(async () => {
      const run = await runOf(runId);
      if (run?.error) throw new Error(run.error);
      return run?.endTime && run;
    });
    expect(ended.state).toBe(RunState.COMPLETED);
    return ended.outputText;
  }

  /** What the agent that tells its prompt was asked with. */
  function promptFrom(answer: string): string[] {
    const prompt = JSON.parse(answer) as { role: string; content: string | { type: string; text?: string }[] }[];
    return prompt.flatMap(({ role, content }) =>
      typeof content === "string" ? [] : content.map(({ type, text }) => `${role}: ${text ?? type}`),
    );
  }

  const switchTo = (sessionId: string, agent: string, carry?: Carry) =>
    clientOf(SessionService).switchAgent({ sessionId, agent, ...(carry && { carry }) });

  beforeAll(async () => {
    for (const name of ["caller", "teller", "other-teller"]) {
      const model = { provider: "scripted", model: `${name.replace("other-", "")}.json` };
      await clientOf(AgentService).applyAgent({ agent: { name, model, tools: { use: ["weigh_in"] } } });
    }
    await clientOf(ToolCatalogService).applyCatalogTool({
      tool: { name: "weigh_in", executionType: ExecutionType.INTERNAL },
    });
  });

  it("is what users and agents said, without calls and results, in every run until the next switch", async () => {
    const sessionId = await openSession("caller");
    const first = await say(sessionId, "How heavy?");
    await switchTo(sessionId, "teller");
    const carried = ["user: How heavy?", "user: [Agent caller said]\nI look.", "user: [Agent caller said]\nVery."];
    const { answer } = await say(sessionId, "And now?");
    expect(promptFrom(answer)).toEqual([...carried, "user: And now?"]);
    const again = await say(sessionId, "Once more?");
    expect(promptFrom(again.answer)).toEqual([
      ...carried,
      "user: And now?",
      `assistant: ${answer}`,
      "user: Once more?",
    ]);
    const named = await say(sessionId, "From there?", { previousRunId: first.id });
    expect(promptFrom(named.answer), "a run of the former agent's time").toEqual([...carried, "user: From there?"]);
    expect((await clientOf(SessionService).getSession({ sessionId })).session).toMatchObject({
      ...{ switchCount: 1, carry: Carry.MESSAGES, nextCarry: Carry.UNSPECIFIED },
    });
  });

  it("is empty where the switch carries nothing, and cannot be asked for then", async () => {
    const sessionId = await openSession("caller");
    const { id: previousRunId } = await say(sessionId, "How heavy?");
    await switchTo(sessionId, "teller", Carry.NOTHING);
    const { id, answer } = await say(sessionId, "And now?");
    expect(promptFrom(answer)).toEqual(["user: And now?"]);
    await expect(say(sessionId, "From there?", { previousRunId })).rejects.toThrow(
      `session ${sessionId} has no run ${previousRunId} that agent teller is shown: the switch to it carried nothing`,
    );
    await switchTo(sessionId, "other-teller", Carry.NOTHING);
    const fork = await clientOf(RunService).forkRun({ runId: id, atSequence: 0, input: [] });
    expect(promptFrom(await answerOf(fork.run?.id ?? "")), "a fork keeps its point's view").toEqual(["user: And now?"]);
  });

  it("shows an agent that comes back what it said itself as its own, and its calls no more", async () => {
    const sessionId = await openSession("teller");
    const { answer } = await say(sessionId, "Hello?");
    await switchTo(sessionId, "caller");
    await say(sessionId, "How heavy?");
    await switchTo(sessionId, "teller");
    expect(promptFrom((await say(sessionId, "Well?")).answer)).toEqual([
      ...["user: Hello?", `assistant: ${answer}`],
      ...["user: How heavy?", "user: [Agent caller said]\nI look.", "user: [Agent caller said]\nVery."],
      "user: Well?",
    ]);
  });

  it("is chosen on the command line", async () => {
    const toolbus = (...args: string[]): Promise<Ending> => runCommand(["--url", suite.url, ...args]);
    const carryOf = async (sessionId: string) =>
      (await clientOf(SessionService).getSession({ sessionId })).session?.carry;
    const sessionId = await openSession("caller");
    await toolbus("sessions", "switch", sessionId, "teller", "--carry", "nothing");
    expect(await carryOf(sessionId)).toBe(Carry.NOTHING);
    await toolbus("sessions", "switch", sessionId, "caller");
    expect(await carryOf(sessionId)).toBe(Carry.MESSAGES);
    const refused = await toolbus("sessions", "switch", sessionId, "teller", "--carry", "all");
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain("Allowed choices are messages, nothing");
  });
});

describe("toolbus sessions", () => {
  const toolbus = (...args: string[]): Promise<Ending> => runCommand(["--url", suite.url, ...args]);

  it("lists, switchCount, watches and closes", async () => {
    const sessionId = await openSession("left");
    await using watch = startCommand(["--url", suite.url, "sessions", "watch", sessionId]);
    await until(() => watch.written.stdout.includes("active left"));
    const switched = await toolbus("sessions", "switch", sessionId, "right", "--drain", "100");
    expect(switched).toMatchObject({ exitCode: 0, stdout: `${sessionId} has agent right\n` });
    const listed = await toolbus("sessions", "list", "--limit", "1000");
    expect(listed.stdout.split("\n").find((line) => line.startsWith(sessionId))).toMatch(/ right +active +local /);
    expect(await toolbus("sessions", "close", sessionId)).toMatchObject({ stdout: `${sessionId} closed\n` });
    expect((await watch.ended).exitCode).toBe(0);
    const states = watch.written.stdout.trimEnd().split("\n");
    expect(states.map((line) => line.replace(/ \(context revision \d+\)$/, ""))).toEqual([
      "active left",
      "draining left → right",
      "tearing down left → right",
      "building right",
      "active right",
      "draining right",
      "tearing down right",
      "closed right",
    ]);
    const refused = await toolbus("sessions", "switch", sessionId, "left");
    expect(refused).toMatchObject({ exitCode: 1, stderr: `toolbus: session ${sessionId} is closed\n` });
    expect((await toolbus("sessions", "switch", sessionId, "left", "--drain", "soon")).exitCode).toBe(2);
  });

  it("switches from the agent of a revision only, once however often it is asked", async () => {
    const sessionId = await openSession("left");
    const revisionOf = async () =>
      String((await clientOf(SessionService).getSession({ sessionId })).session?.contextRevision);
    const revision = await revisionOf();
    const toRight = ["sessions", "switch", sessionId, "right", "--context-revision", revision];
    for (let again = 0; again < 2; again++) {
      expect(await toolbus(...toRight)).toMatchObject({ exitCode: 0, stdout: `${sessionId} has agent right\n` });
    }
    const outdated = await toolbus("sessions", "switch", sessionId, "left", "--context-revision", revision);
    expect(outdated).toMatchObject({ exitCode: 1, stdout: "" });
    expect(outdated.stderr).toContain(
      `session ${sessionId} has agent "right" with context revision ${await revisionOf()}`,
    );
    expect(outdated.stderr).toContain(`a switch from context revision ${revision} is not made`);
    expect((await toolbus(...toRight.slice(0, -1), "newest")).exitCode).toBe(2);
    const back = ["sessions", "switch", sessionId, "left", "--context-revision", await revisionOf()];
    expect(await toolbus(...back)).toMatchObject({ stdout: `${sessionId} has agent left\n` });
  });
});

describe("toolbus calls", () => {
  const toolbus = (...args: string[]): Promise<Ending> => runCommand(["--url", suite.url, ...args]);

  it("TOOL-7 LOOP-15 cancels a call that waits, says whether it had started, and lists none of it", async () => {
    const sessionId = await openSession("left");
    await clientOf(ToolCatalogService).applyCatalogTool({
      tool: { name: "weigh", executionType: ExecutionType.EXTERNAL, isAsync: true, visible: false },
    });
    await clientOf(AgentService).applyAgent({ agent: { name: "weigher", tools: { use: ["weigh"] } } });
    await clientOf(SessionService).switchAgent({ sessionId, agent: "weigher" });
    const call = async (callId: string) => {
      for await (const { event } of clientOf(ToolService).callTool({ sessionId, name: "weigh", callId })) {
        if (event.case === "result") return event.value.outputJson;
      }
      return undefined;
    };
    await call("heavy");
    expect((await toolbus("calls", "--session", sessionId)).stdout).toMatch(/^heavy +weigh +pending /m);
    const canceled = await toolbus("calls", "cancel", "heavy", "--reason", "too heavy");
    expect(canceled).toMatchObject({ exitCode: 0, stdout: "heavy will not start\n" });
    expect((await toolbus("calls", "--session", sessionId)).stdout).not.toContain("heavy");
    const late = await toolbus("calls", "submit", "heavy", "7");
    expect(late).toMatchObject({ exitCode: 1, stderr: "toolbus: call heavy is already resolved: it was canceled\n" });
    expect(await toolbus("calls", "cancel", "unborn")).toMatchObject({ stdout: "unborn will not start\n" });
    expect(await call("unborn")).toBe('{"error":"the call was canceled"}');
    const json = await toolbus("calls", "cancel", "unborn", "--json");
    expect(JSON.parse(json.stdout)).toEqual({});
  });
});

// Runs through the whole suite, every service a process: skip, inbox, sub-agents and cancellation as models and people meet them,
// and the commands by which a reader looks into a run and goes on from its middle.

import { fileURLToPath } from "node:url";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { Role, type Run, RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { InputItemSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { textContent, textOfContent } from "#runtime/content/text.ts";
import { until as untilWithin } from "#runtime/time/until.ts";
import { type Ending, runCommand } from "../../harness/commands/command.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const oddServer = fileURLToPath(new URL("../../../services/mcp-bridge/testing/servers/odd-server.ts", import.meta.url));
const scripts = fileURLToPath(new URL("../fixtures/runs", import.meta.url));

const stack = new AsyncDisposableStack();
let suite: TestSuite;
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ env: { TOOLBUS_SCRIPTS: scripts } }));
  await clientOf(SpaceService).createSpace({ spaceId: "lounge" });
  for (const name of ["quiet", "guest", "helper"]) await apply(name);
  await apply("boss", { tools: { use: ["agent_*"] }, subAgents: [{ agent: "helper" }] });
  const decide = { name: "decide", executionType: ExecutionType.SPACE, timeoutMs: 60_000 };
  await clientOf(ToolCatalogService).applyCatalogTool({ tool: decide });
  await apply("patient", { tools: { use: ["decide"] } });
  await apply("chief", { tools: { use: ["agent_patient"] }, subAgents: [{ agent: "patient" }] });
});
afterAll(() => stack.disposeAsync());

const until: typeof untilWithin = (condition, options) => untilWithin(condition, { timeoutMs: 30_000, ...options });
const clientOf: TestSuite["connection"]["client"] = (service) => suite.connection.client(service);
const toolbus = (...args: string[]): Promise<Ending> => runCommand(["--url", suite.url, ...args]);

async function apply(name: string, more: Partial<Omit<MessageInitShape<typeof AgentSchema>, "$typeName">> = {}) {
  await clientOf(AgentService).applyAgent({
    agent: create(AgentSchema, { name, model: { provider: "scripted", model: name }, ...more } as MessageInitShape<
      typeof AgentSchema
    >),
  });
}

async function start(agent: string, text: string): Promise<Run> {
  return (await clientOf(RunService).createRun({ agent, input: [said(text)] })).run!;
}

function said(text: string) {
  return create(InputItemSchema, { item: { case: "message", value: { role: Role.USER, content: textContent(text) } } });
}

const look = async ({ id }: Pick<Run, "id">): Promise<Run> => (await clientOf(RunService).getRun({ runId: id })).run!;

async function ended(run: Pick<Run, "id">): Promise<Run> {
  const isOver = ({ state: status }: Run) => status > RunState.REQUIRES_ACTION;
  await until(async () => isOver(await look(run)), { what: "the run to end" });
  return look(run);
}

/** How many questions the space shows that nobody has answered. */
async function openQuestions(): Promise<number> {
  const { messages } = await clientOf(SpaceService).listMessages({ spaceId: "lounge" });
  const tools = messages.flatMap(({ content }) => (content.case === "tool" ? [content.value] : []));
  return tools.filter(({ state: status }) => status === ToolMessageState.REQUIRES_ACTION).length;
}

describe("a run", () => {
  it("TOOL-12 that skips ends completed, without another word", async () => {
    expect(await ended(await start("quiet", "hello"))).toMatchObject({
      state: RunState.COMPLETED,
      endReason: RunEndReason.SKIPPED,
      turnCount: 1,
    });
  });

  it("LOOP-12 ends with the answer of the tool that its command names, or is refused where there is none", async () => {
    const stopped = await toolbus("run", "boss", "hello", "--stop-at", "agent_helper");
    expect(stopped.exitCode).toBe(0);
    expect(stopped.stdout).toMatch(/\ndone with hello\ncompleted \(stopped_at_tool\)\n$/);
    const refused = await toolbus("run", "boss", "hello", "--stop-at", "agent_hlper");
    expect(refused.exitCode).not.toBe(0);
    expect(refused.stderr).toContain('stop_at_tools names "agent_hlper", which no tool is called');
  });

  it("TOOL-9 starts by itself when a person speaks to the agent, and reads what was said", async () => {
    const { id, sessionId } = await ended(await start("guest", "go in"));
    await clientOf(SpaceService).sendMessage({
      spaceId: "lounge",
      content: textContent("Welcome!"),
      author: { case: "personName", value: "Ada" },
    });
    const runs = async () => (await clientOf(RunService).listRuns({ sessionId })).runs;
    await until(async () => (await runs()).length === 2, { what: "the second run" });
    const second = (await runs()).find((run) => run.id !== id)!;
    expect(await ended(second)).toMatchObject({ selfWakeCount: 1, agent: "guest" });
    expect(
      JSON.stringify(
        (await look(second)).items.map(({ item }) => item.case === "message" && textOfContent(item.value.content)),
      ),
    ).toContain("Welcome!");
  });

  it("LOOP-17 ORCH-2 of an agent calls another one, which is a tool like any other: in use, listed, explained", async () => {
    const boss = await ended(await start("boss", "the work"));
    expect(boss.outputText).toBe("Helper says: done with the work");
    const { stdout } = await toolbus("explain", "boss", "agent_helper");
    expect(stdout).toContain("callable by boss");
    const all = (await clientOf(RunService).listRuns({ pageSize: 100 })).runs;
    expect(all.filter(({ parent }) => parent?.runId === boss.id)).toMatchObject([{ agent: "helper" }]);
  });

  it("LOOP-15 LOOP-17 that is canceled takes along its sub-agent and the call that a person was to answer", async () => {
    const chief = await start("chief", "x");
    const child = async () => {
      const { runs } = await clientOf(RunService).listRuns({ pageSize: 100 });
      return runs.find(({ parent }) => parent?.runId === chief.id);
    };
    await until(async () => (await openQuestions()) > 0, { what: "the question to be shown" });
    const { run } = await clientOf(RunService).cancelRun({ runId: chief.id, reason: "enough" });
    expect(run?.state).toBe(RunState.CANCELED);
    await until(async () => ((await child())?.state ?? 0) > RunState.REQUIRES_ACTION, { what: "the child to end" });
    expect(await child()).toMatchObject({ state: RunState.CANCELED });
    await until(async () => (await openQuestions()) === 0, { what: "the question to be withdrawn" });
  });
});

describe("a canceled run", () => {
  it("LOOP-15 reaches the MCP server that works for it: the server is told which request is canceled", async () => {
    const odd = { name: "odd", provider: "mcp", config: { command: process.execPath, args: [oddServer] } };
    await apply("busy", { tools: { use: ["@odd/*"] }, sources: [odd] });
    const run = await start("busy", "x");
    const hasProgress = async () => {
      for await (const { update } of clientOf(RunService).watchRun({
        runId: run.id,
        fromSequence: 0n,
        includeDeltas: true,
      })) {
        if (update.case === "delta" && update.value.delta.case === "progress") return true;
      }
      return false;
    };
    expect(await hasProgress()).toBe(true);
    await clientOf(RunService).cancelRun({ runId: run.id });
    const told = async () => {
      const request = { sessionId: run.sessionId, name: "@odd/canceled" };
      for await (const { event } of clientOf(ToolService).callTool(request)) {
        if (event.case === "result") return JSON.parse(event.value.outputJson).length > 0;
      }
      return false;
    };
    await until(told, { what: "the server to be told" });
    expect(await look(run)).toMatchObject({ state: RunState.CANCELED });
  });
});

describe("the caller of a canceled run", () => {
  it.each(["cancel", "deadline"])(
    "LOOP-15 CTR-4 is told which of its requests is canceled, by %s, and its answer is refused",
    async (end) => {
      await apply("asking");
      const { session } = await clientOf(SessionService).createSession({ agent: "asking" });
      const sessionId = session!.id;
      const relay = clientOf(CallerService);
      await relay.declareTools({ sessionId, declaration: { callerId: "app", tools: [{ name: "wait" }] } });
      const leaving = new AbortController();
      const told: string[] = [];
      let run: Run | undefined;
      let requestId = "";
      try {
        for await (const { event } of relay.watchCaller({ sessionId }, { signal: leaving.signal })) {
          told.push(event.case ?? "");
          if (event.case === "attached") {
            const options = end === "deadline" ? { limits: { timeout: durationFromMs(8_000) } } : {};
            run = (await clientOf(RunService).createRun({ sessionId, input: [said("x")], options })).run;
          }
          if (event.case === "request") {
            requestId = event.value.requestId;
            if (end === "cancel") await clientOf(RunService).cancelRun({ runId: run!.id, reason: "enough" });
          }
          if (event.case !== "canceled") continue;
          expect(event.value.requestId).toBe(requestId);
          break;
        }
      } finally {
        leaving.abort();
      }
      expect(told).toEqual(["attached", "request", "canceled"]);
      const answer = relay.respond({ sessionId, requestId, outcome: { case: "resultJson", value: "1" } });
      await expect(answer).rejects.toThrow(`request ${requestId} not found or already resolved`);
    },
  );
});

describe("toolbus runs", () => {
  it("lists and shows them", async () => {
    const run = await ended(await start("boss", "show me"));
    const listed = await toolbus("runs", "list", "--session", run.sessionId);
    expect(listed.stdout).toMatch(new RegExp(`${run.id} +boss +completed +final_answer +2 `));
    const none = await toolbus("--json", "runs", "list", "--session", run.sessionId, "--state", "failed");
    expect(JSON.parse(none.stdout)).toEqual({});
    const shown = await toolbus("runs", "show", run.id);
    expect(shown.stdout).toContain("completed (final_answer)");
    expect(shown.stdout).toContain("Helper says: done with show me");
  });

  it("replays one turn by turn, as text and as JSON, up to any event", async () => {
    const run = await ended(await start("boss", "replay me"));
    const { stdout } = await toolbus("runs", "replay", run.id);
    for (const part of [
      "given replay me",
      "turn 1",
      "→ agent_helper",
      '✓ "done with replay me"',
      "turn 2",
      "completed (final_answer)",
    ]) {
      expect(stdout).toContain(part);
    }
    const replay = JSON.parse((await toolbus("--json", "runs", "replay", run.id)).stdout);
    expect(replay).toMatchObject({ runId: run.id, agent: "boss", events: 6 });
    const turns = replay.steps.filter(({ kind }: { kind: string }) => kind === "turn");
    expect(turns[0].calls).toMatchObject([{ name: "agent_helper", result: { isError: false, sequence: 3 } }]);
    const first = JSON.parse((await toolbus("--json", "runs", "replay", run.id, "--at", "2")).stdout);
    expect(first.steps.at(-1).calls[0]).not.toHaveProperty("result");
    expect((await toolbus("runs", "replay", "run_none")).stderr).toContain("there is no run run_none");
  });

  it("forks one at an event, with another input, and leaves it as it was", async () => {
    const run = await ended(await start("helper", "first"));
    const forked = await toolbus("runs", "fork", run.id, "--at", "0", "--input", "second");
    expect(forked).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("done with second") });
    const detached = JSON.parse(
      (await toolbus("runs", "fork", run.id, "--at", "3", "--input", "third", "--detach")).stdout,
    );
    const third = await ended({ id: detached.run.id });
    expect(third).toMatchObject({ fork: { runId: run.id, atSequence: 3 }, outputText: "done with third" });
    expect(third.sessionId).not.toBe(run.sessionId);
    expect(await look(run)).toMatchObject({ lastSequence: run.lastSequence, outputText: "done with first" });
    expect((await toolbus("runs", "fork", run.id, "--at", "99")).stderr).toContain("has no event 99: its last is 3");
  });

  it("cancels one", async () => {
    const chief = await start("chief", "x");
    await until(async () => (await look(chief)).turnCount > 0, { what: "the first turn" });
    expect((await toolbus("runs", "cancel", chief.id, "--reason", "enough")).stdout).toBe(`${chief.id} canceled\n`);
    const done = await ended(await start("helper", "x"));
    expect((await toolbus("runs", "cancel", done.id)).stderr).toContain("has ended");
  });
});

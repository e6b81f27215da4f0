// What MCP servers ask people while their tools are called, with every service as a process.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { commandsAt } from "../../harness/commands/commands-at.ts";
import { signalProcess } from "../../harness/processes.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";
import { openAskingServer } from "../fixtures/asking/modern-server.ts";

const patient = { timeoutMs: 30_000, intervalMs: 50 };
const oldServer = new URL("../fixtures/asking/old-server.ts", import.meta.url).pathname;

const roots = [{ uri: "file:///srv/books", name: "books" }];

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let modern: Awaited<ReturnType<typeof openAskingServer>>;
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ isolate: true }));
  const config = { command: process.execPath, args: [oldServer], callTimeout: "2s", roots };
  modern = stack.use(await openAskingServer());
  const sources = [
    { name: "old", provider: "mcp", config },
    { name: "new", provider: "mcp", config: { url: modern.url, roots } },
    { name: "rootless", provider: "mcp", config: { command: process.execPath, args: [oldServer] } },
  ];
  const agent = { name: "asker", tools: { use: ["@old/*", "@new/*", "@rootless/*"] }, sources };
  await suite.connection.client(AgentService).applyAgent({ agent });
});
afterAll(() => stack.disposeAsync());

const { toolbus } = commandsAt(() => suite.url);

function serviceOf(name: string) {
  const service = suite.services.find((candidate) => candidate.service === name);
  if (service === undefined) throw new Error(`no ${name}`);
  return service;
}

async function openSession(sessionId: string, { isInSpace = true } = {}) {
  const { connection } = suite;
  const [spaces, router] = [connection.client(SpaceService), connection.client(ToolService)];
  const calls = connection.client(ToolCallService);
  const member = { case: "agent", value: { sessionId, agent: "asker" } } as const;
  await connection.client(SessionService).createSession({ sessionId, agent: "asker" });
  await spaces.createSpace({ spaceId: sessionId });
  if (isInSpace) await spaces.enterSpace({ spaceId: sessionId, member });
  return {
    calls,
    async call(name: string, callId = "", headers: Record<string, string> = {}) {
      const logs: string[] = [];
      const request = { sessionId, name, callId, argumentsJson: "{}" };
      for await (const { event } of router.callTool(request, { headers })) {
        if (event.case === "log") logs.push(event.value.message);
        if (event.case === "result") return { ...event.value, logs, value: JSON.parse(event.value.outputJson) };
      }
      throw new Error("the call ended without a result");
    },
    /** As a client does that has lost its connection: under the same id, until there is an answer. */
    callAgain(name: string, callId: string) {
      return until(() => this.call(name, callId).catch(() => undefined), patient);
    },
    /** What the space shows of questions; the newest is first. */
    async shown(state: ToolMessageState = ToolMessageState.REQUIRES_ACTION) {
      return until(async () => {
        const { messages } = await spaces.listMessages({ spaceId: sessionId });
        const tools = messages.flatMap(({ content }) => (content.case === "tool" ? [content.value] : []));
        return tools.find((tool) => tool.tool === "elicitation/create" && tool.state === state);
      }, patient);
    },
    answer: (callId: string, value: object) =>
      spaces.answerToolCall({
        ...{ spaceId: sessionId, callId, name: "Ada" },
        outcome: { case: "resultJson", value: JSON.stringify(value) },
      }),
  };
}

describe("what servers up to 2025-11-25 ask", () => {
  it("ORCH-6 a form is shown in the space, checked against its schema, and completed with its defaults", async () => {
    const session = await openSession("form");
    const calling = session.call("@old/book");
    const question = await session.shown();
    const askedAtMs = Date.now();
    expect(JSON.parse(question.argumentsJson)).toMatchObject({
      ...{ tool: "@old/book", message: "Where to?", mode: "form" },
      requestedSchema: { properties: { seats: { default: 2 } } },
    });
    const wrong = session.answer(question.callId, { action: "accept", content: { city: "R", class: "third" } });
    await expect(wrong).rejects.toThrow("is refused");
    await expect(session.answer(question.callId, { action: "accept" })).rejects.toThrow("is refused");
    await until(() => Date.now() > askedAtMs + 2_500, patient); // the call's time stands still
    await session.answer(question.callId, { action: "accept", content: { city: "Rome", class: "first" } });
    const { value } = await calling;
    expect(value).toEqual({ action: "accept", content: { city: "Rome", seats: 2, class: "first" } });
  });

  it("ORCH-6 a URL is shown to be opened, and a person may decline", async () => {
    const session = await openSession("url");
    const calling = session.call("@old/sign");
    const question = await session.shown();
    expect(JSON.parse(question.argumentsJson)).toMatchObject({ mode: "url", url: "https://example.org/sign" });
    const listed = await toolbus("calls", "--session", "url");
    expect(listed.stdout).toContain(question.callId);
    const answers = await toolbus("answers", "--session", "url");
    expect(answers.stdout).toContain("  open https://example.org/sign, then\n");
    expect(answers.stdout).toContain(`  toolbus calls answer ${question.callId}\n`);
    expect((await toolbus("calls", "answer", question.callId, "--decline", "--cancel")).exitCode).not.toBe(0);
    expect((await toolbus("calls", "answer", question.callId, "--decline")).stdout).toContain("is answered");
    expect((await calling).value).toMatchObject({ action: "decline" });
  });

  it("ORCH-6 a URL that has to be opened first (-32042) is shown, and the call is made again", async () => {
    const session = await openSession("agree");
    const calling = session.call("@old/agree");
    await session.answer((await session.shown()).callId, { action: "accept" });
    expect((await calling).value).toBe("agreed");
  });

  it("ORCH-6 with nobody to ask, the server is told at once, and the log says why", async () => {
    const session = await openSession("alone", { isInSpace: false });
    const { value, logs } = await session.call("@old/book");
    expect(value).toEqual({ action: "cancel" });
    expect(logs.join()).toContain("nobody can be asked: the agent has no active space");
  });

  it("ORCH-6 a question that its server gives up is withdrawn, and the call goes on", async () => {
    const session = await openSession("impatient");
    expect((await session.call("@old/impatient")).value).toMatchObject({ gaveUp: expect.any(String) });
    const question = await session.shown(ToolMessageState.ERROR);
    const late = session.answer(question.callId, { action: "accept", content: { city: "Rome" } });
    await expect(late).rejects.toThrow("already resolved");
  });

  it("LOOP-14 the death of the server that asks ends its call as unknown, and withdraws the question", async () => {
    const session = await openSession("crash");
    const { value, isError } = await session.call("@old/crash");
    expect(isError).toBe(true);
    expect(value.error).toContain("outcome_unknown");
    await session.shown(ToolMessageState.ERROR);
  });

  it("ORCH-6 a canceled call withdraws its question", async () => {
    const session = await openSession("canceled");
    const calling = session.call("@old/book", "canceled-1");
    await session.shown();
    await session.calls.cancelToolCall({ callId: "canceled-1", reason: "enough" });
    expect((await calling).isError).toBe(true);
    await session.shown(ToolMessageState.ERROR);
    const { calls } = await session.calls.listToolCalls({ sessionId: "canceled", states: [ToolCallState.WAITING] });
    expect(calls).toEqual([]);
  });
});

describe("what servers of 2026-07-28 ask", () => {
  const toRome = { action: "accept", content: { city: "Rome" } };
  const booked = { where: { action: "accept", content: { city: "Rome", seats: 2 } }, signed: { action: "accept" } };

  it("ORCH-6 each question is shown, and the call is repeated with its answer and the server's own state", async () => {
    const session = await openSession("rounds");
    const calling = session.call("@new/book");
    const where = await session.shown();
    await session.answer(where.callId, toRome);
    const sign = await until(async () => {
      const shown = await session.shown();
      return shown.callId !== where.callId && shown;
    }, patient);
    expect(JSON.parse(sign.argumentsJson)).toMatchObject({ mode: "url", url: "https://example.org/sign" });
    await session.answer(sign.callId, { action: "accept" });
    expect((await calling).value).toEqual(booked);
  });

  it("ORCH-6 a server that asks for what it was not offered is told so at once", async () => {
    const session = await openSession("sample");
    const { isError, value } = await session.call("@new/sample");
    expect(isError).toBe(true);
    expect(value.error).toMatch(/sampling/i);
  });

  it("LOOP-14 BUS-4 a question outlives the router and the bridge, is asked once, and its answer has one effect", async () => {
    const session = await openSession("survivor");
    const before = modern.booked.length;
    const lost = session.call("@new/book", "survivor-1").catch(() => "lost");
    const where = await session.shown();
    for (const name of ["tool-router", "mcp-bridge"]) signalProcess(serviceOf(name), "SIGKILL");
    expect(await lost).toBe("lost");
    const again = session.callAgain("@new/book", "survivor-1");
    await until(() => session.answer(where.callId, toRome).catch(() => undefined), patient);
    const sign = await until(async () => {
      const shown = await session.shown();
      return shown.callId !== where.callId && shown;
    }, patient);
    await session.answer(sign.callId, { action: "accept" });
    expect((await again).value).toEqual(booked);
    expect(modern.booked.length - before).toBe(1);
  });
});

describe("what servers are told", () => {
  it("ORCH-6 the roots of its entry, whatever the revision; without any, it is not told that there are", async () => {
    const session = await openSession("roots");
    expect((await session.call("@old/roots")).value).toEqual({ roots });
    expect((await session.call("@new/roots")).value).toEqual({ roots });
    expect((await session.call("@old/offered")).value).toMatchObject({ roots: {}, elicitation: { form: {}, url: {} } });
    const { value } = await session.call("@rootless/offered");
    expect(value).not.toHaveProperty("roots");
    expect(value).not.toHaveProperty("sampling");
  });

  it("the place of a call in its trace", async () => {
    const session = await openSession("traced");
    const trace = "0af7651916cd43dd8448eb211c80319c";
    const { value } = await session.call("@old/meta", "", { traceparent: `00-${trace}-b7ad6b7169203331-01` });
    expect(value.traceparent).toContain(trace);
  });
});

// The scenarios of tools, spaces and inboxes, with every service as a process: what people see and answer, and what agents hear.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { InboxService } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { MemoryService } from "#gen/toolbus/space/v1/memory_service_pb.ts";
import { ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { textContent, textOfContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { fixturesIn } from "../../harness/agents/fixtures.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const patient = { timeoutMs: 45_000, intervalMs: 50 };

const stack = new AsyncDisposableStack();
let suite: TestSuite;
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ isolate: true, env: fixturesIn("spaces") }));
});
afterAll(() => stack.disposeAsync());

/** A session of its own with the listener, in a space of the same name if it is to be in one. */
async function openSession(sessionId: string, { isInSpace = true } = {}) {
  const { connection } = suite;
  const [spaces, router] = [connection.client(SpaceService), connection.client(ToolService)];
  await connection.client(SessionService).createSession({ sessionId, agent: "listener" });
  await spaces.createSpace({ spaceId: sessionId });
  if (isInSpace)
    await spaces.enterSpace({ spaceId: sessionId, member: { case: "agent", value: { sessionId, agent: "listener" } } });
  return {
    ...{ spaces, owner: { sessionId, agent: "listener" } },
    async call(name: string, value: object, callId = "") {
      for await (const { event } of router.callTool({
        sessionId,
        name,
        callId,
        argumentsJson: JSON.stringify(value),
      })) {
        if (event.case === "result") return { ...event.value, value: JSON.parse(event.value.outputJson) };
      }
      throw new Error("the call ended without a result");
    },
    async shown() {
      const { messages } = await spaces.listMessages({ spaceId: sessionId });
      return messages.toReversed().flatMap(({ content }) => (content.case === "tool" ? [content.value] : []));
    },
    /** What the agent's runs said, once there are so many; the first run first. */
    async heard(count: number) {
      const runs = connection.client(RunService);
      const ended = await until(async () => {
        const listed = await runs.listRuns({ sessionId, states: [RunState.COMPLETED] });
        return listed.runs.length >= count && listed.runs;
      }, patient);
      const whole = await Promise.all(ended.map(({ id }) => runs.getRun({ runId: id })));
      return whole.map(({ run }) => run?.outputText).reverse();
    },
  };
}

describe("tools that people see", () => {
  it("TOOL-11 a visible tool without an active space is an error, and nothing runs", async () => {
    const session = await openSession("outside", { isInSpace: false });
    const result = await session.call("confirmAction", { question: "Book?" });
    expect(result).toMatchObject({
      isError: true,
      value: { error: 'Tool "confirmAction" is visible but you are not in a space. Call enter_space first.' },
    });
    expect(await session.shown()).toEqual([]);
  });

  it("TOOL-9 TOOL-10 an answer to a call that was pending wakes the agent by itself, which reads it in its inbox", async () => {
    const session = await openSession("cycle15");
    const { value } = await session.call("confirmAction", { question: "Confirm booking?" });
    expect(value).toMatchObject({ status: "pending", pendingToolCallId: expect.any(String) });
    const callId: string = value.pendingToolCallId;
    expect(await session.shown()).toMatchObject([{ callId, state: ToolMessageState.REQUIRES_ACTION }]);
    const answer = (resultJson: string) =>
      session.spaces.answerToolCall({ spaceId: "cycle15", callId, outcome: { case: "resultJson", value: resultJson } });
    await expect(answer('{"confirmed":"perhaps"}')).rejects.toThrow(/invalid_argument.*is refused/);
    const answers = await Promise.allSettled(["true", "false"].map((yes) => answer(`{"confirmed":${yes}}`)));
    const winner = answers.findIndex(({ status }) => status === "fulfilled") === 0 ? "true" : "false";
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await session.heard(1)).toEqual([
      `I heard: [Tool Result: confirmAction] (callId: ${callId}) {"confirmed":${winner}}`,
    ]);
    await until(async () => (await session.shown())[0]?.state === ToolMessageState.COMPLETE, patient);
  }, 90_000);

  it("TOOL-9 an answer after the time is told to the agent as an error first, and comes to its inbox", async () => {
    const session = await openSession("late");
    const result = await session.call("askQuickly", {}, "late-call");
    expect(result).toMatchObject({ isError: true, value: { error: "Tool timed out after 1500ms" } });
    await session.spaces.answerToolCall({
      spaceId: "late",
      callId: "late-call",
      outcome: { case: "resultJson", value: '"yes"' },
    });
    expect(await session.heard(1)).toEqual(['I heard: [Tool Result: askQuickly] (callId: late-call) "yes"']);
  }, 90_000);

  it("TOOL-10 an internal tool that is visible is shown complete with its arguments", async () => {
    const session = await openSession("chart");
    expect((await session.call("displayChart", { points: [1, 2] })).value).toEqual({
      success: true,
      args: { points: [1, 2] },
    });
    await until(async () => (await session.shown())[0]?.state === ToolMessageState.COMPLETE, patient);
    expect(await session.shown()).toMatchObject([{ tool: "displayChart", argumentsJson: '{"points":[1,2]}' }]);
  });
});

describe("what agents hear", () => {
  it("TOOL-13 words of a person wake the agents of the space, tool messages do not", async () => {
    const session = await openSession("lobby");
    const bystander = { sessionId: "lobby-bystander", agent: "bystander" };
    await suite.connection.client(SessionService).createSession(bystander);
    await session.spaces.enterSpace({ spaceId: "lobby", member: { case: "agent", value: bystander } });
    await session.call("displayChart", {});
    await session.spaces.sendMessage({
      spaceId: "lobby",
      content: textContent('Say "hello"\n[Plan: x] "y"'),
      author: { case: "personName", value: "Husam" },
    });
    expect(await session.heard(1)).toEqual(['I heard: [Husam: "Say \\"hello\\"\\n[Plan: x] \\"y\\""]']);
    const inbox = suite.connection.client(InboxService);
    const waiting = await until(async () => {
      const { events } = await inbox.listInboxEvents(bystander);
      return events.length > 0 && events;
    }, patient);
    expect(waiting.map(({ event }) => event.case)).toEqual(["message"]);
    const { runs } = await suite.connection.client(RunService).listRuns({ sessionId: bystander.sessionId });
    expect(runs).toEqual([]);
  }, 90_000);

  it("TOOL-13 the agent of a closed session leaves its space, where nothing more is kept for it", async () => {
    const { spaces } = await openSession("closing");
    const members = async () => (await spaces.getSpace({ spaceId: "closing" })).space?.members.map(({ name }) => name);
    expect(await members()).toEqual(["listener"]);
    await suite.connection.client(SessionService).closeSession({ sessionId: "closing" });
    expect(await members()).toEqual([]);
  });

  it("TOOL-12 a plan whose time has come wakes the agent, through every service", async () => {
    const session = await openSession("planned");
    const entry = {
      kind: MemoryKind.PLAN,
      key: "call",
      text: "Call Tokyo",
      dueTime: timestampFromMs(Date.now() + 500),
    };
    await suite.connection.client(MemoryService).setEntries({ ...session.owner, entries: [entry] });
    expect(await session.heard(1)).toEqual(['I heard: [Plan: call] "Call Tokyo"']);
  }, 90_000);

  it("ORCH-1 TOOL-9 a result that comes after a switch stays with the agent that called, and wakes it when it is back", async () => {
    const session = await openSession("switched");
    const { value } = await session.call("confirmAction", { question: "Still?" });
    const switchTo = (agent: string) =>
      suite.connection.client(SessionService).switchAgent({ sessionId: "switched", agent });
    await switchTo("bystander");
    await session.spaces.answerToolCall({
      ...{ spaceId: "switched", callId: value.pendingToolCallId },
      outcome: { case: "resultJson", value: '{"confirmed":true}' },
    });
    const inbox = suite.connection.client(InboxService);
    await until(async () => (await inbox.listInboxEvents(session.owner)).events.length === 1, patient);
    expect((await inbox.listInboxEvents({ sessionId: "switched", agent: "bystander" })).events).toEqual([]);
    const active = await session.spaces.getActiveSpace({ sessionId: "switched" });
    expect([active.spaceId, (await session.spaces.getActiveSpace(session.owner)).spaceId]).toEqual(["", "switched"]);
    const { runs } = await suite.connection.client(RunService).listRuns({ sessionId: "switched" });
    expect(runs).toEqual([]);
    await switchTo(session.owner.agent);
    expect(await session.heard(1)).toEqual([
      `I heard: [Tool Result: confirmAction] (callId: ${value.pendingToolCallId}) {"confirmed":true}`,
    ]);
  }, 90_000);
});

describe("spaces killed and started again in mid-work", () => {
  it("TOOL-9 each answer of a person is shown and heard, exactly once", async () => {
    const session = await openSession("rough");
    const callIds = Array.from({ length: 24 }, (_, index) => `rough-${index}`);
    for (const callId of callIds) await session.call("confirmAction", { question: "Still?" }, callId);
    const answer = async (callId: string) => {
      const outcome = { case: "resultJson", value: '{"confirmed":true}' } as const;
      const request = { spaceId: "rough", callId, submissionId: `of ${callId}`, outcome };
      await until(async () => {
        const fault = await session.spaces.answerToolCall(request).then(
          () => "",
          (error: unknown) => String(error),
        );
        expect(fault, "whoever won is told so").not.toMatch(/has its answer|already resolved/);
        return fault === "";
      }, patient);
    };
    const service = suite.services.find(({ service }) => service === "spaces");
    const answering = (async () => {
      for (const callId of callIds) await answer(callId);
    })();
    for (let kills = 0; kills < 3; kills++) {
      await until(() => session.shown().catch(() => false), patient);
      const pid = await until(() => service?.pid, patient);
      process.kill(pid, "SIGKILL");
      await until(() => service?.pid !== pid, patient);
    }
    await answering;

    const runs = suite.connection.client(RunService);
    const heard = await until(async () => {
      const listed = await runs.listRuns({ sessionId: "rough" }).catch(() => ({ runs: [] }));
      const whole = await Promise.all(listed.runs.map(({ id }) => runs.getRun({ runId: id })));
      const items = whole.flatMap(({ run }) => run?.items ?? []);
      const texts = items.flatMap(({ item }) => (item.case === "message" ? [textOfContent(item.value.content)] : []));
      const results = texts.filter((text) => text.startsWith("[Tool Result: confirmAction]"));
      return results.length >= callIds.length && results;
    }, patient);
    const line = (callId: string) => `[Tool Result: confirmAction] (callId: ${callId}) {"confirmed":true}`;
    expect(heard.toSorted()).toEqual(callIds.map(line).toSorted());
    await until(async () => {
      const shown = await session.shown().catch(() => []);
      return shown.length > 0 && shown.every(({ state: status }) => status === ToolMessageState.COMPLETE);
    }, patient);
  }, 180_000);
});

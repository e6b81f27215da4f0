// What people see of a call while the model still writes it, with every service as a process.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { type SpaceEvent, type ToolMessage, ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { fixturesIn } from "../../harness/agents/fixtures.ts";
import { signalProcess } from "../../harness/processes.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const patient = { timeoutMs: 60_000, intervalMs: 50 };

const stack = new AsyncDisposableStack();
let suite: TestSuite;
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ isolate: true, env: fixturesIn("streaming") }));
});
afterAll(() => stack.disposeAsync());

interface Shown {
  readonly event: SpaceEvent["event"]["case"];
  readonly tool: ToolMessage;
}

/** A run of an agent in a space of its own, and what who watches that space is told of calls. */
async function start(agent: string, id: string) {
  const { connection } = suite;
  const [spaces, runs] = [connection.client(SpaceService), connection.client(RunService)];
  const sessionId = id;
  await connection.client(SessionService).createSession({ sessionId, agent });
  await spaces.createSpace({ spaceId: id });
  await spaces.enterSpace({ spaceId: id, member: { case: "agent", value: { sessionId, agent } } });
  const input = [{ item: { case: "message" as const, value: { role: Role.USER, content: textContent("draw") } } }];
  const { run } = await runs.createRun({ sessionId, input });
  const runId = run?.id ?? "";
  const isUnderWay = (status: RunState) => status === RunState.QUEUED || status === RunState.IN_PROGRESS;
  return {
    runId,
    /** The updates up to the one that is looked for. */
    async watch(isLast: (shown: Shown) => boolean): Promise<Shown[]> {
      const seen: Shown[] = [];
      for await (const { update } of spaces.watchSpace({ spaceId: id, fromSequence: 0n })) {
        const event = update.case === "event" ? update.value : undefined;
        const value = event?.event.value;
        if (value?.$typeName !== "toolbus.space.v1.SpaceMessage" || value.content.case !== "tool") continue;
        const shown = { event: event?.event.case, tool: value.content.value };
        seen.push(shown);
        if (isLast(shown)) break;
      }
      return seen;
    },
    async ended() {
      return until(async () => {
        const { run } = await runs.getRun({ runId }).catch(() => ({ run: undefined })); // it may be starting again
        return run !== undefined && !isUnderWay(run.state) && run;
      }, patient);
    },
    async standing() {
      const { messages } = await spaces.listMessages({ spaceId: id });
      return messages.toReversed().flatMap(({ content }) => (content.case === "tool" ? [content.value] : []));
    },
  };
}

const isOver = ({ tool }: Shown) => tool.state === ToolMessageState.COMPLETE || tool.state === ToolMessageState.ERROR;

describe("a call of a visible tool, while the model writes it", { timeout: 120_000 }, () => {
  it("TOOL-10 is told as started, then streaming with growing arguments, then done, all under one id", async () => {
    const started = await start("drawer", "grows");
    const seen = await started.watch(isOver);
    const [first, ...rest] = seen.map(({ event }) => event);
    expect(first).toBe("toolStarted");
    expect(rest.at(-1)).toBe("toolDone");
    expect(rest.slice(0, -1).every((event) => event === "toolStreaming")).toBe(true);
    expect(rest.length).toBeGreaterThan(2);
    expect(new Set(seen.map(({ tool }) => tool.callId)).size).toBe(1);
    const texts = seen.map(({ tool }) => tool.argumentsJson);
    for (const [index, text] of texts.slice(1).entries()) expect(text.startsWith(texts[index] ?? "")).toBe(true);
    expect(seen[0]?.tool.argumentsIncomplete).toBe(true);
    expect(JSON.parse(texts.at(-1) ?? "")).toMatchObject({ title: expect.stringMatching(/^one .* twelve$/) });
    expect(await started.ended()).toMatchObject({ outputText: "drawn" });
  });

  it("TOOL-10 that is refused once it is written ends as an error with the reason", async () => {
    const started = await start("slip", "refused");
    const seen = await started.watch(isOver);
    expect(seen.at(0)?.event).toBe("toolStarted");
    expect(seen.at(-1)?.event).toBe("toolError");
    expect(seen.at(-1)?.tool.result?.outputJson).toMatch(/title/);
    await started.ended();
    expect((await started.standing()).map(({ state: status }) => status)).toEqual([ToolMessageState.ERROR]);
  });

  it("TOOL-10 LOOP-15 of a run that is canceled ends as an error", async () => {
    const started = await start("drawer", "canceled");
    await started.watch(({ event }) => event === "toolStarted");
    await suite.connection.client(RunService).cancelRun({ runId: started.runId });
    expect((await started.watch(isOver)).at(-1)?.event).toBe("toolError");
    await started.ended();
    expect((await started.standing()).map(({ state: status }) => status)).toEqual([ToolMessageState.ERROR]);
  });

  it("TOOL-10 LOOP-13 by a process that is killed ends as an error; the next process shows its own, and nothing stays running", async () => {
    const started = await start("drawer", "killed");
    await started.watch(({ event }) => event === "toolStarted");
    const orchestrator = suite.services.find(({ service }) => service === "orchestrator");
    if (orchestrator === undefined) throw new Error("there is no orchestrator");
    signalProcess(orchestrator, "SIGKILL");
    expect(await started.ended()).toMatchObject({ state: RunState.COMPLETED, outputText: "drawn" });
    expect((await started.standing()).map(({ state: status }) => status)).toEqual([
      ToolMessageState.ERROR,
      ToolMessageState.COMPLETE,
    ]);
  });
});

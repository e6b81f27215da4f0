// Providers that are no part of the suite, in other languages, started and killed while agents use them.

import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import type { ChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { until } from "#runtime/time/until.ts";
import { findPlaces, type Places, type ProviderName, startProvider } from "../../../examples/providers/start.ts";
import { projectRoot } from "../../architecture/source-files.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const stack = new AsyncDisposableStack();
const running = new Map<ProviderName, ChildProcess>();
let places: Places;
let suite: TestSuite;

async function start(name: ProviderName): Promise<void> {
  running.set(name, await startProvider(name, places, suite));
}

beforeAll(async () => {
  places = await findPlaces();
  const directory = await mkdtemp(join(tmpdir(), "toolbus-test-providers-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  for (const from of ["examples/providers", "test/system/fixtures/providers"]) {
    for (const kind of ["agents", "models"]) {
      await cp(join(projectRoot, from, kind), join(directory, kind), { recursive: true });
    }
  }
  suite = stack.use(
    await openTestSuite({
      env: {
        TOOLBUS_PROVIDERS: places.variable,
        TOOLBUS_AGENTS: join(directory, "agents"),
        TOOLBUS_SCRIPTS: join(directory, "models"),
      },
    }),
  );
  stack.defer(async () => {
    await Promise.all([...running.values()].map((child) => child.close()));
  });
  await Promise.all((["python", "go", "typescript"] as const).map(start));
  await areAllThere();
}, 300_000);
afterAll(() => stack.disposeAsync());

/** All three, as one that asks afresh sees them. */
function areAllThere(): Promise<unknown> {
  const router = suite.connection.client(ToolService);
  const isComplete = async () => {
    const listed = (await router.listTools({ scope: { case: "agent", value: "visitor" } })).tools;
    const tools = listed.filter(({ reference }) => reference.startsWith("@"));
    return tools.length === 5 && tools.every(({ available, callable }) => available && callable);
  };
  return until(isComplete, { timeoutMs: 60_000, what: "the tools of all three" });
}

/** A run from its beginning to its end; `onProgress` hears of calls that tell how far they are. */
async function run(agent: string, onProgress: (callId: string) => void = () => {}) {
  const runs = suite.connection.client(RunService);
  const input = [
    { item: { case: "message" as const, value: { role: Role.USER, content: textContent("three words here") } } },
  ];
  const { run: created } = await runs.createRun({ agent, input });
  const results = new Map<string, { output: string; isError: boolean; provider: string }>();
  for await (const { update } of runs.watchRun({ runId: created!.id, fromSequence: 0n, includeDeltas: true })) {
    if (update.case === "delta" && update.value.delta.case === "progress") onProgress(update.value.delta.value.callId);
    if (update.case !== "event" || update.value.event.case !== "callFinished") continue;
    const { callId, result, execution } = update.value.event.value;
    const { outputJson: output = "", isError = false } = result ?? {};
    results.set(callId, { output, isError, provider: execution?.provider ?? "" });
  }
  const { run: ended } = await runs.getRun({ runId: created!.id });
  return { status: ended?.state, text: ended?.outputText, results, sessionId: ended?.sessionId ?? "" };
}

describe("KIND-2 providers in Python, Go and TypeScript that are no part of the suite", () => {
  it("give an agent tools with results and errors, and the run's log says whose they are", async () => {
    const { status, text, results } = await run("visitor");
    expect([status, text]).toEqual([
      RunState.COMPLETED,
      'There are 25 primes below 100, and 3 words in "three words here".',
    ]);
    expect(new Set([...results.values()].map(({ provider }) => provider))).toEqual(
      new Set(["python", "go", "typescript"]),
    );
    expect([...results.values()].filter(({ isError }) => isError).map(({ output }) => JSON.parse(output))).toEqual(
      expect.arrayContaining([
        { error: "1000001 is more than 1000000" },
        { error: "there is no text to count" },
        { error: "nobody rolls so many dice" },
      ]),
    );
  });

  it.each([
    ["python", "numbers__wait"],
    ["go", "texts__wait"],
  ] as const)("LOOP-15 %s: a call that is canceled ends there, too", async (name, tool) => {
    const { connection } = suite;
    const ids = { sessionId: `cancels-${name}`, callId: `canceled-by-${name}` };
    await connection.client(SessionService).createSession({ sessionId: ids.sessionId, agent: "visitor" });
    let output = "";
    for await (const { event } of connection
      .client(ToolService)
      .callTool({ ...ids, name: tool, argumentsJson: '{"seconds":600}' })) {
      if (event.case === "progress") await connection.client(ToolCallService).cancelToolCall({ callId: ids.callId });
      if (event.case === "result") output = event.value.outputJson;
    }
    expect(JSON.parse(output)).toEqual({ error: "outcome_unknown: the call was canceled" });
    const says = () => running.get(name)?.stderrTail().includes("a call was canceled");
    await until(says, { timeoutMs: 20_000, what: "the provider to say so" });
  });

  it.each(["python", "go"] as const)(
    "%s: killed in the middle of a call, it takes nothing else with it",
    async (name) => {
      let killed: Promise<unknown> | undefined;
      const { status, results, sessionId } = await run(`loses-${name}`, (callId) => {
        if (callId === "call_1_1") killed ??= running.get(name)?.kill();
      });
      expect(killed).toBeDefined();
      expect(status).toBe(RunState.COMPLETED);
      expect(results.get("call_1_1")).toMatchObject({
        isError: true,
        output: expect.stringContaining("outcome_unknown"),
      });
      expect(results.get("call_1_1")?.output).toContain(`provider \\"${name}\\"`);
      expect(results.get("call_1_2")).toMatchObject({ isError: false, output: expect.stringContaining("3") });
      expect(results.get("call_1_3")).toMatchObject({ isError: false, output: expect.stringContaining("rolled") });
      expect(results.get("call_2_1")).toMatchObject({
        isError: true,
        output: expect.stringContaining("nothing was started"),
      });
      expect(results.get("call_2_2")).toMatchObject({ isError: false });
      const other = name === "python" ? "texts" : "numbers";
      expect(results.get("call_2_3")?.output).toContain(`Closest that it may call: \\"${other}__wait\\"`);
      // Events are stored soon after the call that they tell of, not before its end.
      const audited = (kind: AuditKind, tool?: string) =>
        until(
          async () => {
            const filter = { sessionId, kinds: [kind], ...(tool && { tool }) };
            const { events } = await suite.connection.client(AuditService).listAuditEvents({ filter });
            return events.length > 0 && events;
          },
          { what: "an audit event of the call" },
        );
      await audited(AuditKind.UNAVAILABLE, name);
      const blocked = await audited(AuditKind.BLOCKED);
      expect(blocked.map(({ agent, tool, rule }) => [agent, tool, rule])).toEqual([
        [`loses-${name}`, `${other}__wiat`, "no such tool"],
      ]);

      await start(name);
      await areAllThere();
      expect((await run("visitor")).status).toBe(RunState.COMPLETED);
    },
  );
});

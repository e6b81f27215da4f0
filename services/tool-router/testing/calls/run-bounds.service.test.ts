import { durationFromMs, durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { usd } from "#runtime/money/testing/dollars.ts";
import { type Caller, callerNamed } from "#runtime/rpc/identity.ts";
import { decodeRunContext, encodeRunContext } from "#runtime/rpc/run-context.ts";
import { until } from "#runtime/time/until.ts";
import { asCaller } from "../../../../test/harness/callers.ts";
import { openReader, type Reader, readFile } from "../peers/reader.ts";

const used = "the run's limit of tool calls (max_tool_calls) is used up";

describe("what a run leaves to its calls, on the bus", () => {
  let suite: Reader;
  beforeAll(async () => {
    suite = await openReader();
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  const callsAt = (runId: string) => suite.mcp.calls.filter(({ scope }) => scope?.runId === runId).length;
  const blockedOf = async (runId: string) => {
    const filter = { kinds: [AuditKind.BLOCKED] };
    const { events } = await suite.clients.audit.listAuditEvents({ filter });
    return events.filter((event) => event.runId === runId);
  };

  test.each([
    ["LOOP-1", "turns", { bounds: { turn: 3, maxTurns: 2 } }, "the run's turns (max_turns) are used up"],
    ["LOOP-1", "calls", { bounds: { call: 3, maxToolCalls: 2 } }, used],
    ["LOOP-12", "tokens", { bounds: { tokensLeft: 0n } }, "the run's tokens (max_tokens) are used up"],
    ["LOOP-12", "cost", { bounds: { costLeft: usd(0) } }, "what the run may cost (max_cost) is used up"],
    ["LOOP-2", "mode", { bounds: { toolChoice: ToolChoiceMode.NONE } }, 'tool_choice is "none"'],
    ["LOOP-2", "forced", { bounds: { forcedTool: "echo" } }, 'tool_choice forces "echo"'],
    ["LOOP-1", "time", { deadline: timestampFromMs(1_000) }, "the time of its run is over (deadline)"],
  ])(
    "%s ORCH-2 ORCH-11 %s: a call beyond it is an error that names agent, tool and rule, an audit event, and reaches nobody",
    async (_, name, more, rule) => {
      const sessionId = await suite.openSession();
      const runId = `run_${name}`;
      const request = { sessionId, runId, name: "read", argumentsJson: '{"path":"a"}', ...more };
      const message = `Agent "reader" may not call tool "@files/read_file": ${rule}.`;
      expect(await suite.clients.call(request)).toMatchObject({ isError: true, output: { error: message } });
      expect(callsAt(runId)).toBe(0);
      await until(async () => (await blockedOf(runId)).length === 1, { what: "the audit event" });
      expect(await blockedOf(runId)).toMatchObject([{ agent: "reader", tool: "@files/read_file", rule, message }]);
    },
  );

  test("LOOP-1 calls that all say they were the run's first are no more than it may make on one router", async () => {
    suite.use(await suite.startRouter("alone", "router-alone"));
    const { call } = suite.clientsOf("router-alone");
    const sessionId = await suite.openSession();
    const bounds = { turn: 1, maxTurns: 5, call: 1, maxToolCalls: 3 };
    const one = (callId: string) =>
      call({ callId, sessionId, runId: "run_astray", name: "read", argumentsJson: '{"path":"a"}', bounds });
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => one(`astray_${n}`)));
    expect(answers.filter(({ isError }) => !isError)).toHaveLength(3);
    expect(answers.filter(({ isError }) => isError)).toMatchObject(
      Array(5).fill({ output: { error: expect.stringContaining(used) } }),
    );
    expect(callsAt("run_astray")).toBe(3);
    const made = suite.mcp.calls.find(({ scope }) => scope?.runId === "run_astray")!.callId;
    expect(await one(made)).toMatchObject({ isError: false });
    expect(callsAt("run_astray")).toBe(3);
  });

  test("KIND-4 the clock of a caller on another machine ends no call: what is left of its time counts, here and at the provider", async () => {
    const sessionId = await suite.openSession();
    const clock = { deadline: timestampFromMs(Date.now() - 10_000), timeout: durationFromMs(8_000) };
    const request = { sessionId, runId: "run_apart", name: "read", argumentsJson: '{"path":"a"}', ...clock };
    expect(await suite.clients.call(request)).toMatchObject({ isError: false });
    const [told] = suite.mcp.calls.filter(({ scope }) => scope?.runId === "run_apart");
    expect(durationMs(told!.timeout!)).toBeLessThanOrEqual(8_000);
    expect(durationMs(told!.timeout!)).toBeGreaterThan(4_000);
  });

  test("LOOP-3 LOOP-12 a provider is told what the run leaves to the call, and allows, so that it can hand it on", async () => {
    const sessionId = await suite.openSession();
    const bounds = { turn: 2, maxTurns: 5, call: 4, maxToolCalls: 9, tokensLeft: 70n, costLeft: usd(0.5) };
    const request = { sessionId, runId: "run_told", name: "read", argumentsJson: '{"path":"a"}' };
    await suite.clients.call({ ...request, bounds, allowedTools: { names: ["read"] } });
    const [told] = suite.mcp.calls.filter(({ scope }) => scope?.runId === "run_told");
    const context = decodeRunContext(told!.runContext);
    expect(context).toMatchObject({ bounds, allowedTools: [{ names: ["read"] }], recovering: false });
  });

  test("ORCH-2 what a call says of its run widens nothing", async () => {
    const sessionId = await suite.openSession();
    const bounds = { turn: 1, maxTurns: 99, call: 1, maxToolCalls: 99, tokensLeft: 1_000_000n, costLeft: usd(99) };
    const answer = await suite.clients.call({ sessionId, name: "@files/remove_file", bounds });
    expect(answer).toMatchObject({ isError: true, output: { error: expect.stringContaining("not in tools.allowed") } });
  });

  test("LOOP-3 of several selections of tools that a call brings along, each narrows it", async () => {
    const sessionId = await suite.openSession();
    const isRefused = async (own: string[] | undefined, ...left: string[][]) => {
      const runContext = encodeRunContext({ allowedTools: left.map((names) => ({ names })) });
      const request = {
        sessionId,
        name: "read",
        argumentsJson: '{"path":"a"}',
        runContext,
        ...(own && { allowedTools: { names: own } }),
      };
      return (await suite.clients.call(request)).isError;
    };
    expect(await isRefused(["read"], ["@files/read_file"], ["read", "echo"])).toBe(false);
    expect(await isRefused(["read"], ["read"], ["echo"])).toBe(true);
    expect(await isRefused(["echo"], ["read"])).toBe(true);
    expect(await isRefused(undefined, [])).toBe(true);
    expect(await isRefused([])).toBe(true);
    expect(await isRefused(undefined)).toBe(false);
  });

  test("LOOP-12 only services are believed that a call repeats another one, and no provider is told so", async () => {
    suite.mcp.offer(
      [{ source: "files", tool: { ...readFile.tool, effect: Effect.PURE } }],
      [{ source: "files", available: true }],
    );
    const sessionId = await suite.openSession();
    const runContext = encodeRunContext({ recovering: true, bounds: { tokensLeft: 0n } });
    const call = async (runId: string, caller: Caller) => {
      const request = { sessionId, runId, name: "read", argumentsJson: '{"path":"a"}', runContext };
      for await (const { event } of suite.clients.router.callTool(request, asCaller(caller))) {
        if (event.case === "result") return event.value.isError;
      }
      throw new Error("the call ended without a result");
    };
    const owner = callerNamed("local");
    await until(async () => !(await call("run_inside", { ...owner, service: "orchestrator" })), {
      what: "the tool to be known as pure",
    });
    expect(await call("run_outside", owner)).toBe(true);
    expect(callsAt("run_outside")).toBe(0);
    const told = suite.mcp.calls.find(({ scope }) => scope?.runId === "run_inside");
    expect(decodeRunContext(told!.runContext)).toMatchObject({ recovering: false, bounds: { tokensLeft: 0n } });
  });

  test("a context that no run can have left is refused in words", async () => {
    const sessionId = await suite.openSession();
    const request = { sessionId, name: "read", argumentsJson: '{"path":"a"}', runContext: Uint8Array.of(0xff, 0xff) };
    const failure = await suite.clients.call(request).then(() => undefined, failureFromConnectError);
    expect(failure).toMatchObject({ code: "invalid_argument", message: expect.stringContaining("run_context") });
  });
});

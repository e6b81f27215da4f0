import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { HealthState } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { InputKind, type InputRequired, InputResponsesSchema } from "#gen/toolbus/provider/v1/input_pb.ts";
import { AllowedToolsSchema, Effect, LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { isAlive } from "../../../test/harness/processes.ts";
import type { Connection } from "../connection/connection.ts";
import { callThrough, oddServerIn, openConnection, startCall } from "./connection.ts";
import { eventsOf } from "./events.ts";

const noSignal = new AbortController().signal;

const secretNamed = (name: string) => `$${`{secret:${name}}`}`;

function toolsOf(connection: Connection) {
  return connection.offer().tools.map(({ tool }) => tool?.name);
}

describe("a server over stdio", () => {
  test("ORCH-6 is ready when it is initialised and listed", async () => {
    await using connection = openConnection(oddServerIn());
    expect(connection.offer().status).toMatchObject({ available: false, reason: "it is starting" });
    await connection.settled(noSignal);
    expect(connection.offer().status).toMatchObject({ source: "odd", available: true, reason: "" });
    expect(toolsOf(connection)).toContain("echo");
    expect(connection.status()).toMatchObject({
      health: HealthState.HEALTHY,
      protocolVersion: "2025-06-18",
      instance: "test",
    });
  });

  test("answers with JSON where its text is JSON, with text where it is not, and whole where it is more", async () => {
    await using connection = openConnection(oddServerIn());
    expect((await callThrough(connection, "echo", { text: '{"a":1}' })).output).toEqual({ a: 1 });
    expect((await callThrough(connection, "echo", { text: "plain" })).output).toBe("plain");
    expect((await callThrough(connection, "structured")).output).toEqual({ answer: 42 });
    const image = await callThrough(connection, "image");
    expect(image.output).toEqual({ content: [{ type: "image", mimeType: "image/png" }] });
    const failed = await callThrough(connection, "fail");
    expect(failed.result).toMatchObject({ isError: true, outputJson: '{"error":"it broke"}' });
  });

  test("LOOP-14 tells the server the call's id, by which it knows a call that is repeated", async () => {
    await using connection = openConnection(oddServerIn());
    expect((await callThrough(connection, "key", {}, { callId: "run_1_call_1" })).output).toBe("run_1_call_1");
  });

  test("tells progress and logs of a call, then one result", async () => {
    await using connection = openConnection(oddServerIn());
    const { progress, logs, output } = await callThrough(connection, "report");
    expect(progress).toMatchObject([{ progress: 1, total: 2, message: "half" }]);
    expect(logs).toMatchObject([{ level: LogLevel.WARN, message: "careful" }]);
    expect(JSON.parse(logs[0]?.fieldsJson ?? "")).toEqual({ logger: "odd", data: { message: "careful", n: 1 } });
    expect(output).toBe("reported");
  });

  test("a message of 12 MiB comes through", async () => {
    await using connection = openConnection(oddServerIn());
    const { output } = await callThrough(connection, "big", { bytes: 12 * 2 ** 20 });
    expect(output).toHaveLength(12 * 2 ** 20);
  });

  test("a message over the configured limit ends the connection with a reason that names the limit", async () => {
    await using connection = openConnection(oddServerIn(), { maxMessageBytes: 65_536 });
    const call = callThrough(connection, "big", { bytes: 100_000 });
    await expect(call).rejects.toMatchObject({
      reason: "OUTCOME_UNKNOWN",
      message: expect.stringMatching(/65536 bytes/),
    });
  });

  test("ORCH-7 one bad tool never hides the rest, on any page, and annotations are kept whole", async () => {
    await using connection = openConnection(oddServerIn("bad-tools"));
    await connection.settled(noSignal);
    const tools = connection.offer().tools.map(({ tool }) => tool);
    expect(tools).toMatchObject([
      {
        name: "good",
        effect: Effect.PURE,
        annotations: { title: "Good", readOnlyHint: true, destructiveHint: false, openWorldHint: true },
      },
      { name: "again", effect: Effect.IDEMPOTENT },
    ]);
  });

  test("ORCH-7 list_changed refreshes, in a storm too", async () => {
    await using connection = openConnection(oddServerIn());
    await callThrough(connection, "grow", { name: "later" });
    await until(() => toolsOf(connection).includes("later"));
    expect((await callThrough(connection, "grow", { name: "even-later" })).output).toBe("grown");
  });

  test("ORCH-7 a change that is told while the first list is on its way is read after it", async () => {
    await using connection = openConnection(oddServerIn("slow-list"));
    await connection.settled(noSignal);
    await until(() => toolsOf(connection).includes("later"));
  });

  test("TOOL-14 only allowed tools are offered and called", async () => {
    await using connection = openConnection({
      ...oddServerIn(),
      allowedTools: create(AllowedToolsSchema, { names: ["echo"] }),
    });
    await connection.settled(noSignal);
    expect(toolsOf(connection)).toEqual(["echo"]);
    await expect(callThrough(connection, "env")).rejects.toMatchObject({ reason: "TOOL_NOT_ALLOWED" });
  });

  test("a tool that the server does not offer is not found", async () => {
    await using connection = openConnection(oddServerIn());
    await expect(callThrough(connection, "nothing")).rejects.toMatchObject({
      code: "not_found",
      reason: "TOOL_NOT_FOUND",
    });
  });

  test("KIND-4 a call that looks for its tool in a list that does not come ends at its deadline, and was not started", async () => {
    await using connection = openConnection(oddServerIn("list-once"));
    await connection.settled(noSignal);
    const deadlineMs = Date.now() + 300;
    const sinceMs = tickedMs();
    await expect(callThrough(connection, "nothing", {}, { deadlineMs })).rejects.toMatchObject({
      code: "deadline_exceeded",
      reason: "CALL_NOT_STARTED",
    });
    expect(tickedMs() - sinceMs).toBeLessThan(5_000);
  });

  test("one that dies in mid-call fails the call at once, its outcome unknown, and the next call reaches another", async () => {
    await using connection = openConnection(oddServerIn());
    const died = callThrough(connection, "die");
    await expect(died).rejects.toMatchObject({
      code: "unavailable",
      reason: "OUTCOME_UNKNOWN",
      message: expect.stringMatching(/exited with 3: out of cheese/),
    });
    expect((await callThrough(connection, "echo", { text: "back" })).output).toBe("back");
  });

  test("ORCH-6 the tools of one that died stay known, and calls wait for the process that takes its place", async () => {
    await using connection = openConnection(oddServerIn());
    const listed = await callThrough(connection, "echo", { text: "there" }).then(() => toolsOf(connection));
    await callThrough(connection, "die").catch(() => {});
    expect(connection.offer().status).toMatchObject({ available: false, starting: true });
    expect(toolsOf(connection)).toEqual(listed);
    const all = await Promise.all(["a", "b", "c"].map((text) => callThrough(connection, "echo", { text })));
    expect(all.map(({ output }) => output)).toEqual(["a", "b", "c"]);
  });

  test("a call over its deadline is canceled at the server", async () => {
    await using connection = openConnection(oddServerIn());
    await connection.settled(noSignal);
    const late = callThrough(connection, "wait", {}, { deadlineMs: Date.now() + 200 });
    await expect(late).rejects.toMatchObject({ code: "deadline_exceeded", reason: "OUTCOME_UNKNOWN" });
    const told = await callThrough(connection, "canceled");
    expect(told.output).toHaveLength(1);
  });

  test("ORCH-6 each progress begins a call's time anew, up to the longest that it may take", async () => {
    await using connection = openConnection(oddServerIn());
    await connection.settled(noSignal);
    const work = (steps: number, longestMs?: number) =>
      callThrough(
        connection,
        "work",
        { steps },
        {
          deadlineMs: Date.now() + 500,
          ...(longestMs !== undefined && { latestMs: Date.now() + longestMs }),
        },
      );
    expect((await work(12, 10_000)).output).toBe("worked");
    await expect(work(12)).rejects.toMatchObject({ code: "deadline_exceeded" });
    await expect(work(100, 1_000)).rejects.toMatchObject({ code: "deadline_exceeded" });
  });

  test("ORCH-6 the time of a server's calls is told of its tools", async () => {
    await using connection = openConnection({ ...oddServerIn(), callTimeout: durationFromMs(300_000) });
    await connection.settled(noSignal);
    expect(connection.offer().tools[0]?.tool?.timeout).toMatchObject(durationFromMs(300_000));
  });

  test("a call that nobody waits for any more is canceled at the server", async () => {
    await using connection = openConnection(oddServerIn());
    const caller = new AbortController();
    const call = startCall(connection, "wait", {}, { signal: caller.signal });
    await call.next(); // its first progress: it runs
    const end = call.next();
    caller.abort(new Error("gone"));
    await expect(end).rejects.toThrow("gone");
    await until(async () => ((await callThrough(connection, "canceled")).output as unknown[]).length === 1);
  });

  test("a second call under the same id joins the first, or is given its result", async () => {
    await using connection = openConnection(oddServerIn());
    const ask = () => callThrough(connection, "pids", {}, { callId: "same" });
    const [first, second] = await Promise.all([ask(), ask()]);
    await callThrough(connection, "die").catch(() => {});
    const third = await ask();
    expect(second.output).toEqual(first.output);
    expect(third.output).toEqual(first.output);
    const other = await callThrough(connection, "pids", {}, { callId: "same", sessionId: "s2" });
    expect(other.output).not.toEqual(first.output);
  });

  test("a question on a shared connection with several calls is nobody's, and the operator is told so", async () => {
    const warnings: string[] = [];
    await using connection = openConnection(oddServerIn(), { sessionId: "", onWarning: (text) => warnings.push(text) });
    const first = startCall(connection, "ask", {}, { accepted: [InputKind.FORM] });
    await first.next();
    const { output } = await callThrough(connection, "ask", {}, { accepted: [InputKind.FORM] });
    expect(output).toEqual({ action: "cancel" });
    expect(warnings).toEqual([expect.stringContaining("several calls")]);
    await first.return(undefined);
  });

  test("DOOR-2 a question of a server is asked of a call that has somebody to ask, not of one beside it", async () => {
    await using connection = openConnection(oddServerIn());
    await connection.settled(noSignal);
    const leaving = new AbortController();
    const beside = startCall(connection, "*prompts/list", {}, { signal: leaving.signal });
    const unanswered = beside.next().catch(() => {});
    const calling = { callId: "asking", accepted: [InputKind.FORM] };
    const call = startCall(connection, "ask", {}, calling);
    const event = (await call.next()).value?.event;
    expect(event?.case).toBe("inputRequired");
    const state = (event?.value as InputRequired | undefined)?.state ?? new Uint8Array();
    const resultJson = JSON.stringify({ action: "accept", content: { sure: true } });
    const responses = create(InputResponsesSchema, { state, responses: [{ id: "1", resultJson }] });
    const { output } = await callThrough(connection, "ask", {}, { ...calling, responses });
    expect(output).toEqual({ action: "accept", content: { sure: true } });
    leaving.abort();
    await Promise.all([unanswered, call.return(undefined)]);
  });

  test("its environment is what is allowed and what its configuration says, secrets resolved", async () => {
    process.env.TOOLBUS_TEST_LEAK = "leaked";
    await using connection = openConnection(
      { ...oddServerIn(), env: { TOKEN: `Bearer ${secretNamed("KEY")}` } },
      { secrets: { KEY: "k1" }, environment: { LANG: "C" } },
    );
    const { output } = await callThrough(connection, "env");
    expect(output).toMatchObject({ TOKEN: "Bearer k1", LANG: "C" });
    expect(output).not.toHaveProperty("TOOLBUS_TEST_LEAK");
  });

  test("a secret that is missing is named", async () => {
    await using connection = openConnection({ ...oddServerIn(), env: { TOKEN: secretNamed("KEY") } });
    await connection.settled(noSignal);
    expect(connection.offer().status.reason).toMatch(/TOOLBUS_SECRET_KEY/);
  });

  test("ORCH-10 closing ends one that ignores SIGTERM, with its children", async () => {
    const connection = openConnection(oddServerIn("deaf"));
    const { output } = await callThrough(connection, "pids");
    const pids = output as number[];
    expect(pids.map(isAlive)).toEqual([true, true]);
    await connection[Symbol.asyncDispose]();
    await until(() => !pids.some(isAlive), { what: "the processes to be gone" });
  });

  test("ORCH-8 with a check, the light shows that the server answers", async () => {
    await using connection = openConnection({
      ...oddServerIn(),
      healthCheck: { interval: durationFromMs(20), timeout: durationFromMs(2_000) },
    });
    await until(
      () => connection.status().checkTime !== undefined && connection.status().health === HealthState.HEALTHY,
    );
    expect(connection.status().reason).toBe("");
  });

  test("ORCH-8 a server that misses two checks is red, and is connected to again", async () => {
    await using connection = openConnection({
      ...oddServerIn("mute"),
      healthCheck: { interval: durationFromMs(10), timeout: durationFromMs(50) },
    });
    const before = (await callThrough(connection, "pids")).output;
    const lights = new Set<HealthState>();
    const note = () => lights.add(connection.status().health);
    await until(() => note() && lights.has(HealthState.DEGRADED) && lights.has(HealthState.UNHEALTHY), {
      intervalMs: 1,
    });
    await until(async () => {
      const told = await callThrough(connection, "pids").catch(() => undefined); // it may go just then
      return told && JSON.stringify(told.output) !== JSON.stringify(before);
    });
  });

  test("a connection that nobody holds is given up after the idle time, one that is held is not", async () => {
    let idle = 0;
    await using connection = openConnection(oddServerIn(), { idleTimeoutMs: 20, onIdle: () => idle++ });
    const hold = connection.hold();
    await connection.settled(noSignal);
    expect(idle).toBe(0);
    hold?.[Symbol.dispose]();
    await until(() => idle === 1);
  });

  test("a connection that may idle for months is not given up at once", async () => {
    let idle = 0;
    const onIdle = () => void idle++;
    await using connection = openConnection(oddServerIn(), { idleTimeoutMs: 2 ** 31, onIdle });
    expect((await callThrough(connection, "echo", { text: "later" })).output).toBe("later");
    expect(idle).toBe(0);
  });

  test("two calls at once never mix their results", async () => {
    await using connection = openConnection(oddServerIn());
    const texts = Array.from({ length: 50 }, (_, index) => `text ${index}`);
    const told = await Promise.all(texts.map((text) => eventsOf(startCall(connection, "echo", { text }))));
    expect(told.map(({ output }) => output)).toEqual(texts);
  });
});

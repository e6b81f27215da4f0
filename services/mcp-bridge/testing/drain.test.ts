import { expect, test } from "vitest";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { programOf } from "../../../test/harness/programs.ts";
import { clientFor } from "../../clients.ts";
import { call, clientsOf, environmentFor, oddSource, openBridge, openTwoBridges } from "./bridge.ts";

test("ORCH-10 BUS-2 an orderly stop of one of two bridges under load fails no call, and no source is told as gone", async () => {
  await using bus = await openTestBus();
  await using leaving = await openChildProcess({
    command: process.execPath,
    args: [programOf("services/mcp-bridge/main")],
    env: environmentFor(bus, "leaving"),
  });
  const lines = leaving.lines()[Symbol.asyncIterator]();
  await until(async () => String((await lines.next()).value).includes('"msg":"ready"'), { timeoutMs: 30_000 });
  const scopes = Array.from({ length: 6 }, (_, index) => ({ sessionId: `s${index}`, agent: "a" }));
  const source = oddSource("odd");
  for (const scope of scopes) await call(clientsOf(bus, "leaving"), source, "echo", { text: "mine" }, { scope });
  await using staying = await openBridge(bus);
  const either = { ...staying, provider: clientFor(bus, ToolProviderService, { process: "mcp-bridge" }) };

  const over = new AbortController();
  const faults: unknown[] = [];
  let answered = 0;
  const calling = scopes.map(async (scope, index) => {
    while (!over.signal.aborted) {
      const text = `t${answered}`;
      const [tool, args] = index === 0 ? ["wait", { ms: 1_000 }] : ["echo", { text }];
      const told = await call(either, source, tool as string, args as object, { scope }).catch(
        (error: unknown) => error,
      );
      if (told instanceof Error) faults.push(String(told));
      else answered += 1;
    }
  });
  const watching = scopes.map(async (scope) => {
    while (!over.signal.aborted) {
      try {
        const stream = either.provider.watchProvidedTools({ scope, sources: [source] }, { signal: over.signal });
        for await (const { tools, sources } of stream)
          if (tools.length === 0 && !sources.every(({ starting }) => starting)) faults.push(sources);
      } catch {} // it ends with the instance that served it, and is opened again
    }
  });
  await until(() => answered > 50);
  process.kill(leaving.pid, "SIGTERM");
  const { code } = await leaving.exited;
  const before = answered;
  await until(() => answered > before + 50, { timeoutMs: 20_000 });
  over.abort();
  await Promise.all([...calling, ...watching]);
  expect(faults).toEqual([]);
  expect(code).toBe(0);
}, 90_000);

test("ORCH-10 a connection that a stopping bridge has given away is not opened there again, while others end their calls", async () => {
  await using bridges = await openTwoBridges();
  const { left, right } = bridges;
  // it takes a while to close: what is asked of its owner in that time waits for it
  const source = oddSource("odd", ["deaf"]);
  const [busy, moving] = ["busy", "moving"].map((sessionId) => ({ scope: { sessionId, agent: "a" } }));
  for (const more of [busy, moving]) await call(left, source, "echo", { text: "mine" }, more);
  const long = call(left, source, "wait", { ms: 8_000 }, busy);
  await until(async () => (await call(right, source, "pids", {}, moving)).output !== undefined);

  const over = new AbortController();
  let slowestMs = 0;
  const calling = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) {
      const sinceMs = tickedMs();
      expect((await call(right, source, "echo", { text: "moved" }, moving)).output).toBe("moved");
      slowestMs = Math.max(slowestMs, tickedMs() - sinceMs);
    }
  });
  const stopped = left[Symbol.asyncDispose]();
  expect((await long).output).toBe("waited");
  over.abort();
  await Promise.all([...calling, stopped]);
  expect(slowestMs).toBeLessThan(8_000);
}, 60_000);

// A caller that dies with requests in its hands, as a process behind the gateway.

import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { openProxy } from "../../harness/proxy/proxy.ts";
import { openTestSuite } from "../../harness/suite.ts";

const program = fileURLToPath(new URL("../fixtures/caller.ts", import.meta.url));

/** A caller of its own process, three requests in its hands, that goes away. Gives how long after it each call ended. */
async function endsOfCalls(how: "killed" | "cut"): Promise<number[]> {
  await using suite = await openTestSuite({ services: ["gateway", "tool-router", "caller-relay"] });
  const { client } = suite.connection;
  const sessionId = "left-alone";
  const apply = () =>
    client(AgentService)
      .applyAgent({ agent: { name: "asker" } })
      .catch(() => undefined);
  await until(apply, { timeoutMs: 60_000, what: "the router to be there" });
  await client(SessionService).createSession({ sessionId, agent: "asker" });
  const declaration = { callerId: "app", tools: [{ name: "ask" }] };
  await client(CallerService).declareTools({ sessionId, declaration });

  let isCut = false;
  const goesOn = () => !isCut;
  const port = Number(new URL(suite.url).port);
  await using cable = await openProxy({ port, onClientData: goesOn, onServerData: goesOn });
  await using caller = await openChildProcess({
    command: process.execPath,
    args: [program, how === "cut" ? `http://127.0.0.1:${cable.port}` : suite.url, sessionId],
    env: { ...process.env, TOOLBUS_API_KEY: suite.apiKey },
  });
  const told: string[] = [];
  void (async () => {
    for await (const line of caller.lines()) told.push(line);
  })();
  await until(() => told.includes("attached"), { timeoutMs: 30_000, what: "the caller to be attached" });

  const ask = async () => {
    for await (const { event } of client(ToolService).callTool({ sessionId, name: "app_ask" })) {
      if (event.case === "result") return { ...event.value, endedAtMs: tickedMs() };
    }
    throw new Error("the call ended without a result");
  };
  const calls = [ask(), ask(), ask()];
  await until(() => told.filter((line) => line === "request").length === calls.length, { what: "the requests" });
  const leftAtMs = tickedMs();
  isCut = how === "cut";
  if (how === "killed") void caller.kill();
  return (await Promise.all(calls)).map(({ isError, outputJson, endedAtMs }) => {
    expect([isError, JSON.parse(outputJson).error]).toEqual([
      true,
      expect.stringMatching(/^Connection lost: .*"app_ask"/),
    ]);
    return endedAtMs - leftAtMs;
  });
}

it("CTR-7 a caller whose process is killed ends its requests within a second, with an error that is no timeout", async () => {
  for (const ms of await endsOfCalls("killed")) expect(ms).toBeLessThan(1_000);
}, 120_000);

it("CTR-7 a caller whose cable was cut ends its requests within three seconds, likewise", async () => {
  for (const ms of await endsOfCalls("cut")) expect(ms).toBeLessThan(3_500);
}, 120_000);

// The death of the caller-relay, or of the router, in the middle of a mix of calls of a caller's tools: who waits for its caller gets
// the answer, all others are told in time.

import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { signalProcess } from "../../harness/processes.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";
import { beginCall } from "../fixtures/begun-calls.ts";

const AT_ONCE = 12;
/** What an answer may take besides: the way over the gateway, or what the requests took for theirs a moment before, on a busy machine. */
const WAY_MS = 500;

let suite: TestSuite;

beforeAll(async () => {
  suite = await openTestSuite({ services: ["gateway", "tool-router", "caller-relay"], isolate: true });
  const apply = () =>
    suite.connection
      .client(AgentService)
      .applyAgent({ agent: { name: "asker" } })
      .catch(() => undefined);
  await until(apply, { timeoutMs: 60_000, what: "the router to be there" });
}, 90_000);
afterAll(() => suite[Symbol.asyncDispose]());

/** A caller that attaches again and again; how often it was sent each request. */
async function openCaller(sessionId: string, graceMs: number) {
  const { client } = suite.connection;
  const callers = client(CallerService);
  await client(SessionService).createSession({ sessionId, agent: "asker" });
  const declaration = { callerId: "app", tools: [{ name: "ask" }] };
  const declare = () => callers.declareTools({ sessionId, declaration }).catch(() => undefined);
  await until(declare, { timeoutMs: 30_000, what: "the relay to be back from the test before" });
  const sent = new Map<string, number>();
  const leaving = new AbortController();
  let streams = 0;
  const watch = async () => {
    const request = { sessionId, streamId: "window", reconnectGrace: durationFromMs(graceMs) };
    for await (const { event } of callers.watchCaller(request, { signal: leaving.signal })) {
      if (event.case === "attached") streams += 1;
      if (event.case === "request") sent.set(event.value.requestId, (sent.get(event.value.requestId) ?? 0) + 1);
    }
  };
  const attached = (async () => {
    while (!leaving.signal.aborted) await watch().catch(() => new Promise((resolve) => setTimeout(resolve, 50)));
  })();
  await until(() => streams === 1, { timeoutMs: 30_000, what: "the caller to be attached" });
  return {
    sent,
    streams: () => streams,
    answer: (requestId: string) =>
      callers.respond({
        ...{ sessionId, requestId, submissionId: requestId },
        outcome: { case: "resultJson", value: JSON.stringify(requestId) },
      }),
    async [Symbol.asyncDispose]() {
      leaving.abort();
      await attached;
    },
  };
}

async function midway(caller: Awaited<ReturnType<typeof openCaller>>, sessionId: string) {
  const begunAtMs = tickedMs();
  const calls = Array.from({ length: AT_ONCE }, () => beginCall(suite.connection, sessionId, { name: "app_ask" }));
  await until(() => caller.sent.size === AT_ONCE, { timeoutMs: 30_000, what: "the requests" });
  return { calls, wayMs: Math.max(WAY_MS, tickedMs() - begunAtMs) };
}

function kill(name: "caller-relay" | "tool-router"): number {
  const killedAtMs = tickedMs();
  signalProcess(suite.services.find(({ service }) => service === name) ?? { pid: 0 }, "SIGKILL");
  return killedAtMs;
}

/** What a call gave that is asked for again until a router answers. */
function askAgain(sessionId: string, callId: string): Promise<string> {
  const ask = async () => {
    const request = { sessionId, callId, name: "app_ask", argumentsJson: "{}" };
    for await (const { event } of suite.connection.client(ToolService).callTool(request))
      if (event.case === "result") return event.value.outputJson;
    return undefined;
  };
  return until(() => ask().catch(() => undefined), { timeoutMs: 60_000, what: `the answer of ${callId}` });
}

it("CTR-7 calls outlive a relay that is killed: a caller that comes back answers them, and is asked nothing new", async () => {
  const sessionId = "comes-back";
  await using caller = await openCaller(sessionId, 20_000);
  const { calls } = await midway(caller, sessionId);
  kill("caller-relay");
  await until(() => caller.streams() > 1, { timeoutMs: 30_000, what: "the caller to come back" });
  for (const requestId of caller.sent.keys()) {
    const answer = () => caller.answer(requestId).catch(() => undefined); // until the next holder is there
    await until(answer, { timeoutMs: 20_000, what: `the answer to ${requestId}` });
  }
  const ended = await Promise.all(calls.map((call) => call.ended));
  expect(ended.map(({ text }) => text).sort()).toEqual([...caller.sent.keys()].sort());
  expect(caller.sent.size).toBe(AT_ONCE);
}, 120_000);

it("CTR-7 whose caller is waited for by nobody are told within 3 s that a relay was killed", async () => {
  const sessionId = "stays-away";
  await using caller = await openCaller(sessionId, 0);
  const { calls, wayMs } = await midway(caller, sessionId);
  const killedAtMs = kill("caller-relay");
  for (const { ended } of calls) {
    const { isError, text, atMs } = await ended;
    expect([isError, text]).toEqual([true, expect.stringMatching(/^Connection lost|^outcome_unknown/)]);
    expect(atMs - killedAtMs).toBeLessThan(3_000 + wayMs);
  }
}, 120_000);

it("CTR-7 calls outlive a router that is killed: whoever asks again gets the caller's answer, and the caller is asked once", async () => {
  const sessionId = "stays-here";
  await using caller = await openCaller(sessionId, 0);
  const callIds = Array.from({ length: AT_ONCE }, (_, index) => `of-router-${index}`);
  const asked = callIds.map((callId) => askAgain(sessionId, callId));
  await until(() => caller.sent.size === AT_ONCE, { timeoutMs: 30_000, what: "the requests" });
  kill("tool-router");
  for (const callId of callIds) {
    const answer = () => caller.answer(callId).catch(() => undefined); // whose session it is, is the router's to say
    await until(answer, { timeoutMs: 30_000, what: `the answer to ${callId}` });
  }
  expect(await Promise.all(asked)).toEqual(callIds.map((callId) => JSON.stringify(callId)));
  expect([...caller.sent.values()]).toEqual(callIds.map(() => 1));
}, 120_000);

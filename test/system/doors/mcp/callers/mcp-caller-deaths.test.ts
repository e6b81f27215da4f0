// A caller that is an MCP client, and whose gateway is killed: it gets its open request again at another one. Nothing here waits for
// the call that was broken off, for a client of either SDK gives that up only after a minute, when a shorter grace is over.

import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../../../../cli/connection.ts";
import { openTestSuite, type TestSuite } from "../../../../harness/suite.ts";
import { openNewClient, openOldClient } from "../../fixtures/clients.ts";

const scripts = fileURLToPath(new URL("../../../fixtures/runs", import.meta.url));
const key = "the-key-of-alice-herself";
const env = {
  TOOLBUS_SCRIPTS: scripts,
  TOOLBUS_API_KEYS: `olga:the-key-of-olga-herself,alice:${key}`,
  TOOLBUS_OPERATORS: "olga",
  TOOLBUS_DEFAULT_GRANT: "alice",
  TOOLBUS_CALLER_GRACE: "30s",
};

const stack = new AsyncDisposableStack();
let suite: TestSuite;
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ env }));
  const operator = openConnection({ url: suite.url, apiKey: "the-key-of-olga-herself" });
  const agent = { name: "asking", model: { provider: "scripted", model: "asking.json" } };
  await operator.client(AgentService).applyAgent({ agent });
}, 120_000);
afterAll(() => stack.disposeAsync());

const clients = { "SDK 1.x": openOldClient, "SDK 2.x": openNewClient };
type Line = keyof typeof clients;

interface Request {
  readonly request_id: string;
  readonly session_id: string;
}

async function openCaller(line: Line, url: string) {
  const opened = await clients[line]({ url, key, path: "/mcp/~sessions" });
  const requests: Request[] = [];
  opened.client.fallbackNotificationHandler = async ({ method, params }: { method: string; params?: unknown }) => {
    if (method === "notifications/caller_tool_request") requests.push(params as Request);
  };
  const call = (name: string, given: object) => opened.client.callTool({ name, arguments: { ...given } });
  const request = async () => {
    await until(() => requests.length > 0, { timeoutMs: 20_000, what: "the request" });
    return requests[0]!;
  };
  return { requests, call, request, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() };
}

const context = {
  caller_id: "app",
  caller_tools: [{ name: "wait", description: "Waits.", inputSchema: { type: "object" } }],
};
const asking = (session_id: string) => ({
  ...{ agent: "asking", message: "How is it?" },
  ...{ session_id, idempotency_key: "once", context },
});

/** A caller is sent a request through a gateway of its own, which is killed then. Gives the request. */
async function loseGateway(line: Line, session_id: string): Promise<Request> {
  const { nats, credentials } = suite;
  const mortal = stack.use(
    await openTestSuite({
      ...{ natsUrl: nats.url, services: ["gateway"], isolate: true, restart: false },
      env: { ...env, TOOLBUS_BUS_CREDENTIALS: credentials },
    }),
  );
  const caller = await openCaller(line, mortal.url);
  caller.call("session_message", asking(session_id)).catch(() => {}); // nobody can answer it any more
  const request = await caller.request();
  process.kill(mortal.services.find(({ service }) => service === "gateway")!.pid!, "SIGKILL");
  return request;
}

async function isMissed(sessionId: string): Promise<void> {
  const callers = openConnection({ url: suite.url, apiKey: key }).client(CallerService);
  const isAway = async () => !(await callers.getDeclaration({ sessionId })).attached;
  await until(isAway, { timeoutMs: 10_000, intervalMs: 50, what: "the end of the caller's stream" });
}

const moments = { "at once": async () => {}, "once it is missed": isMissed };

describe.each(Object.keys(clients) as Line[])(
  "CTR-11 a caller with the client of %s whose gateway was killed",
  (line) => {
    it.each(Object.keys(moments) as (keyof typeof moments)[])(
      "CTR-7 gets its open request again at another gateway, where it comes back %s",
      async (moment) => {
        const session_id = `killed-${line.slice(4, 5)}-${moment.replaceAll(" ", "-")}`;
        const { request_id } = await loseGateway(line, session_id);
        await moments[moment](session_id);
        await using back = await openCaller(line, suite.url);
        const said = back.call("session_message", asking(session_id));
        expect(await back.request()).toMatchObject({ request_id, session_id });
        const taken = await back.call("caller_tool_response", { session_id, request_id, result: "sent" });
        expect(taken.structuredContent).toEqual({ late: false });
        expect((await said).structuredContent).toMatchObject({ state: "completed", output_text: "It is sent." });
        expect(back.requests).toHaveLength(1);
      },
      60_000,
    );

    it("CTR-7 gets it also with another message, which names the session alone", async () => {
      const session_id = `killed-${line.slice(4, 5)}-alone`;
      const { request_id } = await loseGateway(line, session_id);
      const runs = openConnection({ url: suite.url, apiKey: key }).client(RunService);
      const [run] = (await runs.listRuns({ sessionId: session_id })).runs;
      await using back = await openCaller(line, suite.url);
      back.call("session_message", { session_id, message: "I am back." }).catch(() => {}); // it is left open
      expect(await back.request()).toMatchObject({ request_id, session_id });
      await back.call("caller_tool_response", { session_id, request_id, result: "sent" });
      const first = async () => (await runs.getRun({ runId: run!.id })).run;
      await until(async () => (await first())?.state === RunState.COMPLETED, { what: "the end of the first run" });
      expect((await first())?.outputText).toBe("It is sent.");
    }, 60_000);
  },
);

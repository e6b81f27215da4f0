// Callers that are MCP clients of either era: they lend an agent tools while they wait for its answer, and need nothing else.

import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../../../../cli/connection.ts";
import { openTestSuite, type TestSuite } from "../../../../harness/suite.ts";
import { eventsOf, openNewClient, openOldClient, send } from "../../fixtures/clients.ts";

const scripts = fileURLToPath(new URL("../../../fixtures/runs", import.meta.url));
const keys = { alice: "the-key-of-alice-herself", mallory: "the-key-of-mallory-herself" };
const path = "/mcp/~sessions";

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let other: TestSuite;
beforeAll(async () => {
  const env = {
    TOOLBUS_SCRIPTS: scripts,
    TOOLBUS_API_KEYS: `olga:the-key-of-olga-herself,alice:${keys.alice},mallory:${keys.mallory}`,
    TOOLBUS_OPERATORS: "olga",
    TOOLBUS_DEFAULT_GRANT: "alice,mallory",
  };
  suite = stack.use(await openTestSuite({ env }));
  const { nats, credentials } = suite;
  const gateway = { natsUrl: nats.url, services: ["gateway"], isolate: true, restart: false };
  other = stack.use(await openTestSuite({ ...gateway, env: { ...env, TOOLBUS_BUS_CREDENTIALS: credentials } }));
  const operator = openConnection({ url: suite.url, apiKey: "the-key-of-olga-herself" });
  const agent = { name: "asking", model: { provider: "scripted", model: "asking.json" } };
  await operator.client(AgentService).applyAgent({ agent });
}, 120_000);
afterAll(() => stack.disposeAsync());

/** What the agent asks of its caller. */
interface Request {
  readonly request_id: string;
  readonly session_id: string;
}

interface Answer {
  readonly text: string;
  readonly isError: boolean;
  readonly structured: Record<string, unknown>;
}

interface Caller extends AsyncDisposable {
  readonly requests: readonly Request[];
  call(name: string, given: object, signal?: AbortSignal): Promise<Answer>;
  /** The first request that it was sent. */
  request(): Promise<Request>;
}

const clients = { "SDK 1.x": openOldClient, "SDK 2.x": openNewClient };
type Line = keyof typeof clients;

async function openCaller(line: Line, { url, key }: { url: string; key: string }): Promise<Caller> {
  const opened = await clients[line]({ url, key, path });
  const { client } = opened;
  const requests: Request[] = [];
  client.fallbackNotificationHandler = async ({ method, params }: { method: string; params?: unknown }) => {
    if (method === "notifications/caller_tool_request") requests.push(params as Request);
  };
  const call = async (name: string, given: object, signal?: AbortSignal): Promise<Answer> => {
    const asked = { name, arguments: { ...given } };
    const options = signal ? { signal } : {};
    const answer =
      line === "SDK 1.x"
        ? await (client as Awaited<ReturnType<typeof openOldClient>>["client"]).callTool(asked, undefined, options)
        : await (client as Awaited<ReturnType<typeof openNewClient>>["client"]).callTool(asked, options);
    const [block] = answer.content as { text: string }[];
    const structured = (answer.structuredContent ?? {}) as Record<string, unknown>;
    return { text: block?.text ?? "", isError: answer.isError === true, structured };
  };
  const request = async () => {
    await until(() => requests.length > 0, { timeoutMs: 20_000, what: "the request" });
    return requests[0]!;
  };
  return { requests, call, request, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() };
}

const tools = {
  caller_id: "app",
  caller_tools: [{ name: "wait", description: "Waits.", inputSchema: { type: "object" } }],
};
const asking = { agent: "asking", message: "How is it?", context: tools };

describe.each(Object.keys(clients) as Line[])("CTR-11 a caller with the client of %s", (line) => {
  const here = () => ({ url: suite.url, key: keys.alice });

  it("is asked on its open message, answers, and is told what the agent says", async () => {
    await using caller = await openCaller(line, here());
    const said = caller.call("session_message", asking);
    const request = await caller.request();
    expect(request).toEqual({
      type: "caller_tool_request",
      request_id: expect.any(String),
      session_id: expect.any(String),
      tool: "wait",
      arguments: {},
      expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
    const { request_id, session_id } = request;
    const result = { status: "sent" };
    const taken = await caller.call("caller_tool_response", { session_id, request_id, result, error: null });
    expect(taken).toMatchObject({ isError: false, structured: { late: false } });
    expect(await said).toMatchObject({
      isError: false,
      text: expect.stringContaining("sent"),
      structured: { session_id, state: "completed", run_id: expect.any(String) },
    });
  });

  it("declares its tools at the top level too, and its error reaches the agent as one", async () => {
    await using caller = await openCaller(line, here());
    const said = caller.call("session_message", { agent: "asking", message: "How is it?", ...tools });
    const { request_id, session_id } = await caller.request();
    const failed = { session_id, request_id, result: "never mind", error: "recipient not found" };
    await caller.call("caller_tool_response", failed);
    expect((await said).text).toContain('{"error":"recipient not found"}');
    const again = await caller.call("caller_tool_response", { session_id, request_id, result: null });
    expect(again).toMatchObject({ isError: true, text: expect.stringContaining("not found or already resolved") });
  });

  it("CTR-6 says how long each of its tools may take", async () => {
    await using caller = await openCaller(line, here());
    const quick = tools.caller_tools.map((one) => ({ ...one, timeout: 300 }));
    const { text } = await caller.call("session_message", { ...asking, context: { ...tools, caller_tools: quick } });
    expect(text).toContain("timed out after 300ms");
  });

  it("CTR-5 is answered for by nobody else, but at any gateway", async () => {
    await using caller = await openCaller(line, here());
    await using elsewhere = await openCaller(line, { url: other.url, key: keys.alice });
    await using stranger = await openCaller(line, { url: suite.url, key: keys.mallory });
    const said = caller.call("session_message", asking);
    const { request_id, session_id } = await caller.request();
    const refused = await stranger.call("caller_tool_response", { session_id, request_id, result: "stolen" });
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining("PRINCIPAL_NOT_OWNER") });
    const intruding = await stranger.call("session_message", { session_id, message: "hello" });
    expect(intruding).toMatchObject({ isError: true, text: expect.stringContaining("SESSION_NOT_FOUND") });
    await elsewhere.call("caller_tool_response", { session_id, request_id, result: "mine" });
    expect((await said).text).toContain("It is mine.");
  });

  it("CTR-7 that leaves ends its requests, and finds the run's end under its key", async () => {
    const session_id = `left-${line.slice(4, 5)}`;
    const keyed = { ...asking, session_id, idempotency_key: "once" };
    const left = await openCaller(line, here());
    const leaving = new AbortController();
    const said = left.call("session_message", keyed, leaving.signal).catch(() => undefined);
    await left.request();
    const runs = openConnection({ url: suite.url, apiKey: keys.alice }).client(RunService);
    const leftAt = tickedMs();
    leaving.abort();
    await left[Symbol.asyncDispose]();
    await said;
    const latest = async () => (await runs.listRuns({ sessionId: session_id })).runs[0];
    await until(async () => (await latest())?.state === RunState.COMPLETED, { intervalMs: 50, what: "the run's end" });
    expect(tickedMs() - leftAt).toBeLessThan(5_000);
    await using back = await openCaller(line, here());
    const { text, structured } = await back.call("session_message", keyed);
    expect(structured.run_id).toBe((await latest())?.id);
    expect(text).toMatch(/Connection lost/);
    expect(back.requests).toEqual([]);
  });

  it("is told what is missing", async () => {
    await using caller = await openCaller(line, here());
    const nobody = await caller.call("session_message", { message: "hello" });
    expect(nobody).toMatchObject({ isError: true, text: expect.stringContaining("session_id") });
    const misnamed = { ...tools, caller_tools: [{ name: "no such name!" }] };
    const refused = await caller.call("session_message", { ...asking, context: misnamed });
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining("app_no such name!") });
  });
});

it("CTR-11 a client of 2024-11-05 is asked without a session and without logging/setLevel, and no digit is lost", async () => {
  const where = { url: suite.url, key: keys.alice, path };
  const call = (id: number, name: string, given: string) =>
    send(where, `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}","arguments":${given}}}`);
  const events = eventsOf(await call(1, "session_message", JSON.stringify(asking)));
  const { method, params } = JSON.parse((await events.next()).value!.data);
  expect(method).toBe("notifications/caller_tool_request");
  const number = "12345678901234567890";
  const { session_id, request_id } = params;
  const named = `"session_id":"${session_id}","request_id":"${request_id}"`;
  await (await call(2, "caller_tool_response", `{${named},"result":{"n":${number}}}`)).text();
  expect((await events.next()).value!.data).toContain(number);
});

import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { until } from "#runtime/time/until.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const example = (name: string) => fileURLToPath(new URL(`../../../examples/watchers/${name}`, import.meta.url));

async function call(
  { connection }: TestSuite,
  argumentsJson: string,
  ids: { runId?: string; callId?: string } = {},
): Promise<{ output: unknown; isError: boolean }> {
  const name = "stock_level";
  for await (const { event } of connection
    .client(ToolService)
    .callTool({ sessionId: "store", name, argumentsJson, ...ids })) {
    if (event.case !== "result") continue;
    return { output: JSON.parse(event.value.outputJson), isError: event.value.isError };
  }
  throw new Error("the call ended without a result");
}

test("TOOL-6 the example of a service outside executes calls through the gateway, two of them share the work, one may die", async () => {
  const env = { TOOLBUS_AGENTS: example("agents"), TOOLBUS_TOOLS: example("tools") };
  await using suite = await openTestSuite({ services: ["tool-router", "gateway"], env });
  await until(() =>
    suite.connection
      .client(AgentService)
      .getAgent({ name: "storekeeper" })
      .catch(() => undefined),
  );
  await suite.connection.client(SessionService).createSession({ agent: "storekeeper", sessionId: "store" });
  const start = () =>
    openChildProcess({
      command: process.execPath,
      args: [example("stock.ts")],
      env: { ...process.env, TOOLBUS_URL: suite.url, TOOLBUS_API_KEY: suite.apiKey },
    });
  const [one, two] = [await start(), await start()];
  const lines = { one: 0, two: 0 };
  const count = async (child: typeof one, which: keyof typeof lines) => {
    for await (const line of child.lines()) if (line.includes("screws")) lines[which] += 1;
  };
  void count(one, "one");
  void count(two, "two");
  await until(async () => !(await call(suite, '{"article":"nuts"}')).isError, { timeoutMs: 60_000 }); // they are starting
  expect(await call(suite, '{"article":"nuts"}')).toEqual({ output: 7, isError: false });
  expect(await call(suite, '{"article":"bolts"}')).toEqual({
    output: { error: "there is no article bolts" },
    isError: true,
  });
  await until(
    async () => {
      expect((await call(suite, '{"article":"screws"}')).output).toBe(1_200);
      return lines.one > 0 && lines.two > 0;
    },
    { timeoutMs: 30_000 },
  );
  process.kill(one.pid, "SIGKILL");
  for (let n = 0; n < 5; n++) expect((await call(suite, '{"article":"screws"}')).output).toBe(1_200);
  for (const child of [one, two]) await child[Symbol.asyncDispose]();
}, 120_000);

test("TOOL-6 TOOL-7 a service outside works by plain HTTP: calls as events, results posted once, 404 and 409 for the others", async () => {
  const env = { TOOLBUS_AGENTS: example("agents"), TOOLBUS_TOOLS: example("tools") };
  await using suite = await openTestSuite({ services: ["tool-router", "gateway"], env });
  const { connection, url } = suite;
  await until(() =>
    connection
      .client(AgentService)
      .getAgent({ name: "storekeeper" })
      .catch(() => undefined),
  );
  await connection.client(SessionService).createSession({ agent: "storekeeper", sessionId: "store" });
  const authorization = { authorization: `Bearer ${suite.apiKey}` };
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json", ...authorization };
    const response = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const leaving = new AbortController();
  const events = await fetch(`${url}/api/tool-calls?tool=stock_level&watcher=plain`, {
    signal: leaving.signal,
    headers: authorization,
  });
  expect(events.headers.get("content-type")).toBe("text/event-stream");
  const reader = events.body!.pipeThrough(new TextDecoderStream()).getReader();
  const answering = call(suite, '{"article":"bolts"}', { runId: "r1", callId: "plain" });
  let text = "";
  await until(async () => {
    text += (await reader.read()).value ?? "";
    return text.includes("event: call");
  });
  const handed = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? "") as Record<string, unknown>;
  expect(handed).toMatchObject({ callId: "plain", runId: "r1", tool: "stock_level", arguments: { article: "bolts" } });
  const { deliveryId } = handed;
  expect((await post("/api/tool-calls/plain/acknowledgement", { deliveryId })).status).toBe(200);
  expect((await post("/api/runs/other/tool-results", { callId: "plain", result: 1 })).status).toBe(404);
  expect((await post("/api/runs/r1/tool-results", { callId: "nothing", result: 1 })).status).toBe(404);
  expect((await post("/api/runs/r1/tool-results", {})).status).toBe(400);
  const results = await Promise.all(
    Array.from({ length: 10 }, (_, n) => post("/api/runs/r1/tool-results", { callId: "plain", result: { n } })),
  );
  expect(results.map(({ status }) => status).toSorted()).toEqual([200, ...Array(9).fill(409)]);
  const won = results.findIndex(({ status }) => status === 200);
  expect(await answering).toEqual({ output: { n: won }, isError: false });
  expect(results.find(({ status }) => status === 409)?.body).toMatchObject({ reason: "CALL_ALREADY_RESOLVED" });
  leaving.abort();
}, 120_000);

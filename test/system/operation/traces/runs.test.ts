// What a collector is told of a run, by the names of OpenTelemetry's conventions.

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as published from "@opentelemetry/semantic-conventions/incubating";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CollectedSpan, type Collector, openCollector } from "#runtime/telemetry/testing/collector.ts";
import { until } from "#runtime/time/until.ts";
import { writeFiles } from "../../../harness/agents/write-files.ts";
import { openTestSuite, type TestSuite } from "../../../harness/suite.ts";

const stack = new AsyncDisposableStack();
const clientSpanId = "b7ad6b7169203331";
/** What the tool behind a URL was sent. */
const seen: string[] = [];
let collector: Collector;
let suite: TestSuite;

beforeAll(async () => {
  collector = stack.use(await openCollector());
  const server = createServer((request, response) => {
    seen.push(String(request.headers.traceparent));
    response.setHeader("content-type", "application/json").end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const directory = await mkdtemp(join(tmpdir(), "toolbus-traces-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const source = fileURLToPath(new URL("meta-server.ts", import.meta.url));
  await writeFiles(directory, {
    "agents/traced.json": {
      name: "traced",
      model: { provider: "scripted", model: "traced.json" },
      tools: { use: ["@meta/*", "web"] },
      sources: [{ name: "meta", provider: "mcp", config: { command: process.execPath, args: [source] } }],
    },
    "tools/web.json": {
      name: "web",
      description: "Asks a URL",
      inputSchema: { type: "object" },
      executionType: "gateway",
      effect: "pure",
      visible: false,
      execution: { url: `http://127.0.0.1:${port}/`, method: "GET" },
    },
    "models/traced.json": {
      turns: [
        { calls: [{ name: "meta__place" }, { name: "web" }, { name: "meta__fail" }] },
        { text: "{{result.meta__place}}" },
      ],
    },
  });
  const env = {
    TOOLBUS_AGENTS: join(directory, "agents"),
    TOOLBUS_TOOLS: join(directory, "tools"),
    TOOLBUS_SCRIPTS: join(directory, "models"),
    TOOLBUS_GATEWAY_ALLOW: `127.0.0.1:${port}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  };
  suite = stack.use(await openTestSuite({ env, isolate: true }));
}, 120_000);
afterAll(() => stack.disposeAsync());

/** Posts it at a place in a trace of its own. */
async function post(path: string, traceId: string, body: object, headers: Record<string, string> = {}) {
  const response = await fetch(suite.url + path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: `Bearer ${suite.apiKey}`,
      traceparent: `00-${traceId}-${clientSpanId}-01`,
      ...headers,
    },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  return response.text();
}

/** The spans of a trace as soon as these are among them, and the parent of each. */
async function spansOf(traceId: string, names: readonly string[]): Promise<CollectedSpan[]> {
  const inTrace = () => collector.spans.filter((span) => span.traceId === traceId);
  const known = () => new Set([clientSpanId, ...inTrace().map(({ spanId }) => spanId)]);
  const isWhole = () =>
    names.every((name) => inTrace().some((span) => span.name === name)) &&
    inTrace().every(({ parentSpanId }) => known().has(parentSpanId));
  await until(isWhole, { timeoutMs: 20_000, what: `${names.join(", ")} and all that is between them` });
  return inTrace();
}

const named = (spans: readonly CollectedSpan[], name: string) => spans.filter((span) => span.name === name);
const traceparentOf = ({ traceId, spanId }: CollectedSpan) => `00-${traceId}-${spanId}-01`;

describe("a run that a client of OpenAI's starts", () => {
  const traceId = "1af7651916cd43dd8448eb211c80319c";
  let spans: CollectedSpan[];
  let said: string;

  beforeAll(async () => {
    const answered = await post("/v1/responses", traceId, { model: "traced", input: "go" });
    said = JSON.parse(answered).output.at(-1).content[0].text;
    spans = await spansOf(traceId, [
      "POST /v1/responses",
      "invoke_agent traced",
      "chat traced.json",
      "execute_tool web",
      "tools/call place",
      "tools/call fail",
    ]);
  });

  it("is one trace, from the client to each of its tools", () => {
    const [door] = named(spans, "POST /v1/responses");
    expect(door).toMatchObject({ service: "gateway", kind: 2, parentSpanId: clientSpanId });
    const [place] = named(spans, "tools/call place");
    expect(said).toBe(traceparentOf(place!));
    const [web] = named(spans, "execute_tool web");
    expect(seen).toEqual([traceparentOf(web!)]);
  });

  it("is told by the names of the conventions: agent, model, tokens, tools, and what failed", () => {
    const [run] = named(spans, "invoke_agent traced");
    expect(run).toMatchObject({ service: "orchestrator", kind: 1, hasFailed: false });
    const of = { "gen_ai.agent.name": "traced", "gen_ai.conversation.id": expect.any(String) };
    expect(run?.attributes).toMatchObject({
      ...of,
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.usage.output_tokens": expect.any(Number),
    });
    const asked = named(spans, "chat traced.json");
    expect(asked).toHaveLength(2);
    for (const { kind, parentSpanId, attributes } of asked) {
      expect([kind, parentSpanId]).toEqual([3, run?.spanId]);
      expect(attributes).toMatchObject({
        ...of,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "traced.json",
        "gen_ai.usage.input_tokens": expect.any(Number),
        "gen_ai.usage.output_tokens": expect.any(Number),
      });
    }
    const [tool] = named(spans, "execute_tool meta__fail");
    expect(tool).toMatchObject({ service: "tool-router", kind: 1, hasFailed: true });
    expect(tool?.attributes).toMatchObject({
      ...of,
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "meta__fail",
      "gen_ai.tool.call.id": expect.any(String),
      "gen_ai.tool.type": "extension",
      "error.type": "tool_error",
    });
    const [sent] = named(spans, "tools/call fail");
    expect(sent).toMatchObject({ service: "mcp-bridge", kind: 3, hasFailed: true });
    expect(sent?.attributes).toMatchObject({
      "mcp.method.name": "tools/call",
      "mcp.protocol.version": expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/),
      "gen_ai.tool.name": "fail",
      "network.transport": "pipe",
      "error.type": "tool_error",
    });
  });

  it("uses no name that is not published, but for its own", () => {
    const names = new Set<unknown>(Object.values(published));
    const used = new Set(spans.flatMap(({ attributes }) => Object.keys(attributes)));
    expect([...used].filter((name) => !names.has(name))).toEqual(["toolbus.run.id"]);
  });
});

it("a call of an MCP client goes on in the trace that its message names", async () => {
  const traceId = "2af7651916cd43dd8448eb211c80319c";
  const other = "3af7651916cd43dd8448eb211c80319c";
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    traceparent: `00-${traceId}-${clientSpanId}-01`,
  };
  const call = { name: "meta__place", arguments: {}, _meta: meta };
  const headers = { "mcp-method": "tools/call", "mcp-name": "meta__place", "mcp-protocol-version": "2026-07-28" };
  const text = await post("/mcp/traced", other, { jsonrpc: "2.0", id: 7, method: "tools/call", params: call }, headers);
  const spans = await spansOf(traceId, ["tools/call meta__place", "execute_tool meta__place", "tools/call place"]);
  const [received] = named(spans, "tools/call meta__place");
  expect(received).toMatchObject({ service: "gateway", kind: 2, parentSpanId: clientSpanId });
  expect(received?.attributes).toMatchObject({ "mcp.method.name": "tools/call", "jsonrpc.request.id": "7" });
  expect(text).toContain(traceparentOf(named(spans, "tools/call place")[0]!));
  await spansOf(other, ["POST /mcp/{agent}"]);
});

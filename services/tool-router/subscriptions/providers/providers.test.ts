import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { expect, test } from "vitest";
import { ProviderSchema } from "#gen/toolbus/provider/v1/provider_pb.ts";
import { ScopeSchema, ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { bytesFromCredit, bytesFromFrame, FrameKind } from "#runtime/rpc/nats/frame/frame.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { createClientTracing } from "#runtime/telemetry/tracing.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { createProviderExecution } from "../../calls/execute/provider.ts";
import { ended, FakeProvider } from "../../testing/fakes/fake-provider.ts";
import { noQuestions } from "../../testing/fakes/fake-questions.ts";
import { entryOf, tool } from "../../testing/fakes/tools.ts";
import { createProviders } from "./providers.ts";

test("the span of a call ends with it, also when its provider goes on after the result", async () => {
  await using bus = await openTestBus();
  const provider = new FakeProvider();
  await using _ = await serveOnNats(bus, { service: "mcp-bridge", routes: provider.routes, drainTimeoutMs: 1 });
  const exporter = new InMemorySpanExporter();
  const tracer = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).getTracer("test");
  const mcp = create(ProviderSchema, { name: "mcp", address: { case: "service", value: "mcp-bridge" } });
  const find = createProviders(bus, () => mcp, { clientTracing: createClientTracing(tracer) });
  const { execute } = createProviderExecution({ ...noQuestions, find, graceMs: () => 0 });
  const call = (callId: string) => {
    const executor = { kind: "provider", provider: "mcp", source: undefined, tool: "echo" } as const;
    const deadline = { at: Date.now() + 5_000, timeoutMs: 5_000 };
    const entry = entryOf(tool("echo", { effect: Effect.PURE }));
    const more = {
      scope: create(ScopeSchema),
      argumentsJson: "{}",
      runDeadline: undefined,
      begun: { kind: "unrecorded" } as const,
      answers: { forms: false, urls: false },
      context: {},
    };
    const control = { signal: new AbortController().signal, emit: () => {} };
    return execute({ callId, entry, executor, deadline, ...more }, control);
  };
  expect((await call("ends")).outputJson).toBe("{}");
  await until(() => exporter.getFinishedSpans().length === 1);
  provider.answer = async function* (_request, signal) {
    yield { event: { case: "result", value: { outputJson: '"early"' } } };
    await ended(signal);
  };
  expect((await call("goes-on")).outputJson).toBe('"early"');
  await until(() => exporter.getFinishedSpans().length === 2);
  await until(() => provider.canceled.includes("goes-on"), { what: "the provider to be told" });
});

test("LOOP-14 an answer over 64 MiB is an unknown outcome: the call was carried out", { timeout: 30_000 }, async () => {
  await using bus = await openTestBus();
  const provider = new FakeProvider();
  await using _ = await serveOnNats(bus, { service: "mcp-bridge", routes: provider.routes, drainTimeoutMs: 1 });
  provider.answer = async function* () {
    yield { event: { case: "result", value: { outputJson: JSON.stringify("x".repeat(64 * 2 ** 20)) } } };
  };
  const mcp = create(ProviderSchema, { name: "mcp", address: { case: "service", value: "mcp-bridge" } });
  const { execute } = createProviderExecution({
    ...noQuestions,
    find: createProviders(bus, () => mcp),
    graceMs: () => 0,
  });
  const answer = await execute(atMostOnce("large"), { signal: new AbortController().signal, emit: () => {} });
  expect(answer.outputJson).toMatch(/^\{"error":"outcome_unknown: .*over the limit/);
});

test("KIND-2 a third party's resource_exhausted that gives no reason says that nothing was started", async () => {
  await using bus = await openTestBus();
  const provider = new FakeProvider();
  await using _ = await serveOnNats(bus, { service: "theirs", routes: provider.routes, drainTimeoutMs: 1 });
  provider.answer = async function* () {
    yield await Promise.reject(new ConnectError("eight calls are in flight", Code.ResourceExhausted));
  };
  const { execute } = createProviderExecution({ ...noQuestions, find: findTheirs(bus), graceMs: () => 0 });
  const answer = await execute(atMostOnce("full"), { signal: new AbortController().signal, emit: () => {} });
  expect(answer.outputJson).toBe('{"error":"provider \\"mcp\\": resource_exhausted: eight calls are in flight"}');
});

test.each([
  ["message size 94 is larger than configured writeMaxBytes 20"],
  ["message size 94 exceeds sendMaxBytes 20"],
  ["trying to send message larger than max (94 vs. 20)"],
  ["Attempted to send message with a size larger than 20"],
  ["Sent message larger than max (94 vs. 20)"],
  ["SERVER: Sent message larger than max (94 vs. 20)"],
  ["message too large 94 > 20"],
  ["Sending message exceeds the maximum configured message size."],
  ["eight calls are in flight", "after it has told something"],
])("LOOP-14 a bare resource_exhausted for an answer: %s", async (text: string, after?: string) => {
  await using bus = await openTestBus();
  const provider = new FakeProvider();
  await using _ = await serveOnNats(bus, { service: "theirs", routes: provider.routes, drainTimeoutMs: 1 });
  provider.answer = async function* () {
    if (after) yield { event: { case: "progress", value: { progress: 1 } } };
    yield await Promise.reject(new ConnectError(text, Code.ResourceExhausted));
  };
  const { execute } = createProviderExecution({ ...noQuestions, find: findTheirs(bus), graceMs: () => 0 });
  const answer = await execute(atMostOnce("full"), { signal: new AbortController().signal, emit: () => {} });
  expect(answer.outputJson).toBe(`{"error":"outcome_unknown: provider \\"mcp\\": data_loss: ${text}"}`);
});

test.each(["PURE", "AT_MOST_ONCE"] as const)(
  "LOOP-14 %s: a call whose provider is lost in the middle of its arguments is had from another instance",
  async (effect) => {
    await using bus = await openTestBus();
    const { connection } = bus;
    const provider = new FakeProvider();
    const subject = `toolbus.rpc.theirs.${ToolProviderService.typeName}.ExecuteTool`;
    const lost = connection.subscribe(subject, {
      max: 1,
      callback: (_, message) => {
        const credit = bytesFromCredit({ messages: 1, bytes: 16_384 });
        message.respond(bytesFromFrame(FrameKind.credit, 0, 0, credit), { reply: "_INBOX.nowhere" });
      },
    });
    await connection.flush();
    const { execute } = createProviderExecution({ ...noQuestions, find: findTheirs(bus), graceMs: () => 0 });
    const argumentsJson = JSON.stringify({ text: "x".repeat(1_000_000) });
    const call = { ...atMostOnce("large"), argumentsJson };
    const entry = { ...call.entry, effect: Effect[effect] };
    const answer = execute({ ...call, entry }, { signal: new AbortController().signal, emit: () => {} });
    await lost.closed;
    await using _ = await serveOnNats(bus, { service: "theirs", routes: provider.routes, drainTimeoutMs: 1 });
    expect((await answer).outputJson.slice(0, 99)).toBe(argumentsJson.slice(0, 99));
    expect(provider.calls.map(({ resumed }) => resumed)).toEqual([false]);
  },
);

function findTheirs(bus: Bus) {
  const address = { case: "service", value: "theirs" } as const;
  return createProviders(bus, () => create(ProviderSchema, { name: "mcp", address }));
}

function atMostOnce(callId: string) {
  return {
    callId,
    entry: { ...entryOf(tool("echo")), effect: Effect.AT_MOST_ONCE },
    executor: { kind: "provider", provider: "mcp", source: undefined, tool: "echo" } as const,
    deadline: { at: Date.now() + 20_000, timeoutMs: 20_000 },
    scope: create(ScopeSchema),
    argumentsJson: "{}",
    runDeadline: undefined,
    begun: { kind: "unrecorded" } as const,
    answers: { forms: false, urls: false },
    context: {},
  };
}

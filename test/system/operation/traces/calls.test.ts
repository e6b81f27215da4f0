import { expect, it } from "vitest";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { openCollector } from "#runtime/telemetry/testing/collector.ts";
import { until } from "#runtime/time/until.ts";
import { plainAgent } from "../../../harness/agents/plain-run.ts";
import { openTestSuite } from "../../../harness/suite.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const clientSpanId = "b7ad6b7169203331";

it("a trace that a client begins goes through the gateway and the router to the provider, unbroken", async () => {
  await using collector = await openCollector();
  const services = ["gateway", "tool-router", "worker-pool"];
  const env = { ...plainAgent, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  await using suite = await openTestSuite({ services, env });
  const { session } = await suite.connection.client(SessionService).createSession({ agent: "whole" });

  const headers = { traceparent: `00-${traceId}-${clientSpanId}-01` };
  const call = { sessionId: session?.id ?? "", name: "@qr/encode", argumentsJson: '{"text":"traced"}' };
  const events = await Array.fromAsync(suite.connection.client(ToolService).callTool(call, { headers }));
  expect(events.at(-1)?.event).toMatchObject({ case: "result", value: { isError: false } });

  const spansOf = (service: string) =>
    collector.spans.filter((span) => span.traceId === traceId && span.service === service);
  const isWhole = () =>
    services.every((service) => spansOf(service).some(({ name }) => /\/(CallTool|ExecuteTool)$/.test(name)));
  await until(isWhole, { timeoutMs: 20_000, what: "the spans of all three services" });

  const hasAllParents = () => {
    const known = new Set([clientSpanId, ...collector.spans.map(({ spanId }) => spanId)]);
    return services.flatMap(spansOf).every(({ parentSpanId }) => known.has(parentSpanId));
  };
  await until(hasAllParents, { timeoutMs: 20_000, what: "the parent of every span to be exported" });
  expect(spansOf("gateway").some(({ parentSpanId }) => parentSpanId === clientSpanId)).toBe(true);
});

import type { Tracer } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { type ProcessIdentity, resourceOf } from "./resource.ts";

/** A tracer that sends its spans to a collector in batches. Nothing global is set: each process part has its own. */
export function openTracing(options: ProcessIdentity & { otlpEndpoint: string }): {
  tracer: Tracer;
  shutdown: () => Promise<void>;
} {
  const exporter = new OTLPTraceExporter({ url: `${options.otlpEndpoint}/v1/traces` });
  const provider = new NodeTracerProvider({
    resource: resourceOf(options),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  return { tracer: provider.getTracer("toolbus"), shutdown: () => provider.shutdown() };
}

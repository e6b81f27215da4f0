import type { Interceptor } from "@connectrpc/connect";
import { type Attributes, createNoopMeter, type Meter, SpanKind, type Tracer } from "@opentelemetry/api";
import { comesWithin } from "../time/comes-within.ts";
import { createRpcMetrics } from "./rpc-metrics.ts";
import { endSpan, parentFromTrace, traceFromSpan } from "./span.ts";
import { currentTrace, runInTrace } from "./trace-context.ts";
import { createClientTracing, createServerTracing } from "./tracing.ts";

export interface TelemetryOptions {
  service: string;
  instance?: string;
  /** The base URL of a collector that speaks OTLP over HTTP. Without it no spans are made, and traces are only passed on. */
  otlpEndpoint?: string | undefined;
  /** Whether metrics are recorded, for `metricsText`. */
  hasMetrics?: boolean | undefined;
}

export interface Telemetry extends AsyncDisposable {
  readonly serverTracing: Interceptor;
  readonly clientTracing: Interceptor;
  /** Undefined when metrics are not recorded. */
  readonly rpcMetrics: Interceptor | undefined;
  /** For a service's own instruments; without metrics they do nothing. */
  readonly meter: Meter;
  /** Does the work inside a span of that name, as part of the current trace. */
  inSpan<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>;
  /** All metrics in the text format of Prometheus; empty when they are not recorded. */
  metricsText(): Promise<string>;
}

/** How long the last spans may take to reach the collector. */
const FLUSH_TIMEOUT_MS = 1_000;

/** Loads the SDKs only when they are asked for, as they cost a start 0.3 s. Disposing sends what is not yet sent. */
export async function openTelemetry(options: TelemetryOptions): Promise<Telemetry> {
  await using stack = new AsyncDisposableStack();
  let tracer: Tracer | undefined;
  let meter = createNoopMeter();
  let metricsText = async () => "";
  if (options.otlpEndpoint !== undefined) {
    const { openTracing } = await import("./tracing-sdk.ts");
    const tracing = openTracing({ ...options, otlpEndpoint: options.otlpEndpoint });
    stack.defer(() => boundedShutdown(tracing.shutdown()));
    tracer = tracing.tracer;
  }
  if (options.hasMetrics) {
    const { openMetrics } = await import("./metrics-sdk.ts");
    const metrics = openMetrics(options);
    stack.defer(() => boundedShutdown(metrics.shutdown()));
    meter = metrics.meter;
    metricsText = metrics.text;
  }
  const opened = stack.move();
  return {
    serverTracing: createServerTracing(tracer),
    clientTracing: createClientTracing(tracer),
    rpcMetrics: options.hasMetrics ? createRpcMetrics(meter) : undefined,
    meter,
    inSpan: (name, attributes, work) => (tracer ? workInSpan(tracer, name, attributes, work) : work()),
    metricsText,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

async function workInSpan<T>(tracer: Tracer, name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
  const span = tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes }, parentFromTrace(currentTrace()));
  const trace = traceFromSpan(span);
  try {
    const result = await (trace ? runInTrace(trace, work) : work());
    endSpan(span);
    return result;
  } catch (error) {
    endSpan(span, error);
    throw error;
  }
}

/** A collector that is away must neither hold up nor fail the end of a service. */
async function boundedShutdown(shutdown: Promise<void>): Promise<void> {
  const settled = shutdown.catch(() => {}); // spans that cannot be delivered are lost; there is nobody left to tell
  await comesWithin(FLUSH_TIMEOUT_MS, settled);
}

import type { Interceptor } from "@connectrpc/connect";
import { createNoopMeter, type Meter, type Tracer } from "@opentelemetry/api";
import { comesWithin } from "../time/comes-within.ts";
import { createInSpan, type InSpan } from "./in-span.ts";
import type { ProcessIdentity } from "./resource.ts";
import { createRpcMetrics } from "./rpc-metrics.ts";
import { createClientTracing, createServerTracing } from "./tracing.ts";

export interface TelemetryOptions extends ProcessIdentity {
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
  /** For work that is no call of a service: a run, a request to a model, a tool. */
  readonly inSpan: InSpan;
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
    inSpan: createInSpan(tracer),
    metricsText,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** A collector that is away must neither hold up nor fail the end of a service. */
async function boundedShutdown(shutdown: Promise<void>): Promise<void> {
  const settled = shutdown.catch(() => {}); // spans that cannot be delivered are lost; there is nobody left to tell
  await comesWithin(FLUSH_TIMEOUT_MS, settled);
}

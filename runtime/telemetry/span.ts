import { ConnectError } from "@connectrpc/connect";
import {
  type Context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  TraceFlags,
  trace as traces,
} from "@opentelemetry/api";
import { failureFromConnectError } from "../failure/connect.ts";
import { Failure, messageFromUnknown } from "../failure/failure.ts";
import { partsOf, type TraceContext } from "./trace-context.ts";

/** The parent of a span that starts at this place. */
export function parentFromTrace(trace: TraceContext | undefined): Context {
  const parts = trace && partsOf(trace);
  if (!parts) return ROOT_CONTEXT;
  const { traceId, spanId, flags: traceFlags } = parts;
  const spanContext = { traceId, spanId, traceFlags, isRemote: true };
  if (!isSpanContextValid(spanContext)) return ROOT_CONTEXT; // all zeros
  const traceState = trace.tracestate ? createTraceState(trace.tracestate) : undefined;
  return traces.setSpanContext(ROOT_CONTEXT, { ...spanContext, ...(traceState && { traceState }) });
}

/** The place inside a span. */
export function traceFromSpan(span: Span): TraceContext | undefined {
  const spanContext = span.spanContext();
  if (!isSpanContextValid(spanContext)) return undefined;
  const { traceId, spanId, traceFlags, traceState } = spanContext;
  const traceparent = `00-${traceId}-${spanId}-0${(traceFlags || TraceFlags.NONE).toString(16)}`;
  const tracestate = traceState?.serialize();
  return tracestate ? { traceparent, tracestate } : { traceparent };
}

export function endSpan(span: Span, error?: unknown): void {
  if (error !== undefined) failSpan(span, typeOfError(error), messageFromUnknown(error));
  span.end();
}

/** `type` is one of few. */
export function failSpan(span: Span, type: string, message?: string): void {
  span.setAttribute("error.type", type);
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
}

/** The reason that callers get, or the error's name where it is none of ours. */
function typeOfError(error: unknown): string {
  if (error instanceof Failure || error instanceof ConnectError) return failureFromConnectError(error).reason;
  return error instanceof Error ? error.name : "_OTHER";
}

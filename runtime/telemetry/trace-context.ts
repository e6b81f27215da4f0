import { AsyncLocalStorage } from "node:async_hooks";

/** The place in a trace where the running work stands, as W3C Trace Context writes it (https://www.w3.org/TR/trace-context/). */
export interface TraceContext {
  traceparent: string;
  tracestate?: string;
}

const storage = new AsyncLocalStorage<TraceContext>();

/** Undefined when nobody upstream traces and this process records nothing. */
export function currentTrace(): TraceContext | undefined {
  return storage.getStore();
}

/** Runs the work, and all that it awaits, at that place in the trace. */
export function runInTrace<T>(trace: TraceContext, work: () => T): T {
  return storage.run(trace, work);
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/;

/** The trace that a carrier's headers name; a malformed one counts as none, as the specification asks. */
export function traceFromHeaders(headers: { get(name: string): string | null }): TraceContext | undefined {
  const traceparent = headers.get("traceparent");
  if (traceparent === null || !TRACEPARENT.test(traceparent)) return undefined;
  const tracestate = headers.get("tracestate");
  return tracestate ? { traceparent, tracestate } : { traceparent };
}

/** The fields by which log lines and traces find each other. */
export function logFieldsFromTrace(trace: TraceContext | undefined): { trace_id?: string; span_id?: string } {
  if (!trace) return {};
  const [, traceId, spanId] = TRACEPARENT.exec(trace.traceparent) ?? [];
  return traceId && spanId ? { trace_id: traceId, span_id: spanId } : {};
}

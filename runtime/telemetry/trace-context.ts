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

/** Does what outlives the request that began it, and is no part of its trace. */
export function outsideTrace<T>(work: () => T): T {
  return storage.exit(work);
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
/** Of what a header can hold, as much as has to be passed on. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** The trace that a carrier's headers name; a malformed one counts as none, as the specification asks. */
export function traceFromHeaders(headers: { get(name: string): string | null }): TraceContext | undefined {
  return traceFromFields({ traceparent: headers.get("traceparent"), tracestate: headers.get("tracestate") });
}

/** Likewise, of fields that anybody may have filled. */
export function traceFromFields({ traceparent, tracestate }: Record<string, unknown>): TraceContext | undefined {
  if (typeof traceparent !== "string" || !TRACEPARENT.test(traceparent)) return undefined;
  return typeof tracestate === "string" && TRACESTATE.test(tracestate) ? { traceparent, tracestate } : { traceparent };
}

/** What a `traceparent` says, or undefined for a malformed one. */
export function partsOf({ traceparent }: TraceContext): { traceId: string; spanId: string; flags: number } | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

/** The fields by which log lines and traces find each other. */
export function logFieldsFromTrace(trace: TraceContext | undefined): { trace_id?: string; span_id?: string } {
  const parts = trace && partsOf(trace);
  return parts ? { trace_id: parts.traceId, span_id: parts.spanId } : {};
}

import type { Attributes, SpanKind, Tracer } from "@opentelemetry/api";
import { endSpan, failSpan, parentFromTrace, traceFromSpan } from "./span.ts";
import { currentTrace, runInTrace, type TraceContext } from "./trace-context.ts";

/** A span that is about to begin. */
export interface SpanStart {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
}

export interface WorkSpan {
  set(attributes: Attributes): void;
  /** Of work that fails without throwing; `type` is one of few, for `error.type`. */
  fail(type: string): void;
}

/**
 * Does the work inside a span, at the current place of the trace unless `parent` names another. Without a collector no span is
 * made and nothing described, and what the work calls is told the same place.
 */
export type InSpan = <T>(
  describe: () => SpanStart,
  work: (span: WorkSpan) => Promise<T>,
  parent?: TraceContext,
) => Promise<T>;

const NO_SPAN: WorkSpan = { set: () => {}, fail: () => {} };

export function createInSpan(tracer: Tracer | undefined): InSpan {
  return async (describe, work, parent = currentTrace()) => {
    if (tracer === undefined) return parent ? runInTrace(parent, () => work(NO_SPAN)) : work(NO_SPAN);
    const { name, ...options } = describe();
    const span = tracer.startSpan(name, options, parentFromTrace(parent));
    const trace = traceFromSpan(span);
    const own: WorkSpan = {
      set: (attributes) => void span.setAttributes(attributes),
      fail: (type) => failSpan(span, type),
    };
    try {
      const result = await (trace ? runInTrace(trace, () => work(own)) : work(own));
      endSpan(span);
      return result;
    } catch (error) {
      endSpan(span, error);
      throw error;
    }
  };
}

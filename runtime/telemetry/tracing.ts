import { Code, ConnectError, type Interceptor, type StreamRequest, type UnaryRequest } from "@connectrpc/connect";
import { type Span, SpanKind, type Tracer } from "@opentelemetry/api";
import { observedMessages } from "./observed-messages.ts";
import { endSpan, parentFromTrace, traceFromSpan } from "./span.ts";
import { currentTrace, runInTrace, type TraceContext, traceFromHeaders } from "./trace-context.ts";

type Next = Parameters<Interceptor>[0];
type Request = UnaryRequest | StreamRequest;
type Response = ReturnType<Next>;

/**
 * Server side: runs the handler at the place in the trace that the caller names, inside a span when there is a tracer. Without
 * a tracer and without a trace it costs one look at the headers.
 */
export function createServerTracing(tracer: Tracer | undefined): Interceptor {
  return (next) => (request) => {
    const trace = traceFromHeaders(request.header);
    if (!tracer) return trace ? runHandler(next, request, trace) : next(request);
    const span = startCall(tracer, SpanKind.SERVER, request, trace);
    return runHandler(next, request, traceFromSpan(span), span);
  };
}

/**
 * Client side: names the place in the trace to the server, inside a span when there is a tracer. Without a tracer, what
 * the caller's caller sent is passed on.
 */
export function createClientTracing(tracer: Tracer | undefined): Interceptor {
  return (next) => (request) => {
    const trace = currentTrace();
    if (!tracer) {
      if (trace) writeTrace(request.header, trace);
      return next(request);
    }
    const span = startCall(tracer, SpanKind.CLIENT, request, trace);
    const inner = traceFromSpan(span);
    if (inner) writeTrace(request.header, inner);
    return runUntilEnd(() => next(request), request, span);
  };
}

function writeTrace(header: Headers, { traceparent, tracestate }: TraceContext): void {
  header.set("traceparent", traceparent);
  if (tracestate) header.set("tracestate", tracestate);
  else header.delete("tracestate");
}

/** A stream's handler runs whenever the next message is asked for, so each step is put into the trace again. */
async function runHandler(next: Next, request: Request, trace: TraceContext | undefined, span?: Span): Response {
  const step = <R>(work: () => R): R => (trace ? runInTrace(trace, work) : work());
  return runUntilEnd(() => step(() => next(request)), request, span, step);
}

/** The span ends with the answer of a unary call, and with the last message of a stream. */
async function runUntilEnd(
  work: () => Response,
  request: Request,
  span: Span | undefined,
  step?: <R>(work: () => R) => R,
): Response {
  const end = span && ((error?: unknown) => endCall(span, error));
  try {
    const response = await work();
    if (!response.stream) {
      end?.();
      return response;
    }
    // A reader that never comes for the messages leaves by the signal.
    if (end) request.signal.addEventListener("abort", () => end(request.signal.reason), { once: true });
    return { ...response, message: observedMessages(response.message, { ...(step && { step }), ...(end && { end }) }) };
  } catch (error) {
    end?.(error);
    throw error;
  }
}

function startCall(tracer: Tracer, kind: SpanKind, { service, method }: Request, at: TraceContext | undefined): Span {
  const name = `${service.typeName}/${method.name}`;
  const attributes = { "rpc.system.name": "connectrpc", "rpc.method": name };
  return tracer.startSpan(name, { kind, attributes }, parentFromTrace(at));
}

function endCall(span: Span, error: unknown): void {
  if (!span.isRecording()) return;
  if (error !== undefined) span.setAttribute("rpc.response.status_code", Code[ConnectError.from(error).code]);
  endSpan(span, error);
}

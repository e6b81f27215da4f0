import type { DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextValues,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import { Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { callPatience } from "../../../bus/link/call-patience.ts";
import { detailOf } from "../../../failure/error-detail.ts";
import { CallSignal } from "../../handling/call-signal.ts";
import type { Progress } from "../channel/channel-options.ts";
import { type ClientRequest, errorOfCall, type MethodRoute } from "./client-call.ts";

/** One call of a generated client as it came, without what it says. */
export interface CallInit<D extends DescMethod> {
  readonly method: D;
  readonly route: MethodRoute;
  readonly interceptors: Interceptor[];
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
  readonly header: ConstructorParameters<typeof Headers>[0];
  readonly contextValues: ContextValues | undefined;
}

/** A call on its way through its interceptors and to the server, with its deadline. */
export class OutgoingCall<R extends UnaryRequest | StreamRequest> {
  readonly signal: CallSignal;
  readonly progress: Progress = { stage: "unsent" };
  /** What the first of the interceptors gets. */
  readonly request: R;
  readonly #route: MethodRoute;
  readonly #deadlineMs: number | undefined;
  /** Since when it may be kept waiting: its start, or the last that was heard of it. */
  #quietSinceMs = performance.now();

  constructor(init: CallInit<DescMethod>, stream: R["stream"], message: R["message"]) {
    const { method, route, timeoutMs } = init;
    const signal = new CallSignal(init.signal, timeoutMs);
    this.signal = signal;
    this.#route = route;
    this.#deadlineMs = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
    this.request = {
      stream,
      method,
      service: method.parent,
      requestMethod: "POST",
      url: route.url,
      message,
      signal: signal.signal,
      header: new Headers(init.header),
      contextValues: init.contextValues ?? createContextValues(),
    } as R; // the method is of its kind
  }

  /** What is sent, from what the last of the interceptors passed on. */
  sent(passed: R): ClientRequest {
    return {
      subject: this.#route.subject,
      header: passed.header,
      deadlineMs: this.#deadlineMs,
      abort: passed.signal === this.request.signal ? this.signal : new CallSignal(passed.signal),
      progress: this.progress,
      isRead: this.#route.isRead,
    };
  }

  /** An answer has come, and others may. */
  hear(): void {
    this.#quietSinceMs = performance.now();
  }

  /** Ends the call with what was thrown, or with what gave it up before. */
  fail(thrown: unknown): ConnectError {
    const { aborted } = this.signal;
    const error = aborted ? ConnectError.from(aborted.reason, Code.Canceled) : ConnectError.from(thrown);
    this.signal.abort(error); // a stream that goes on is canceled
    if (detailOf(error)?.reason === Reason.BUS_UNAVAILABLE) callPatience.spend(this.#quietSinceMs); // whoever is asked next waits for less
    return errorOfCall(error, this.progress);
  }
}

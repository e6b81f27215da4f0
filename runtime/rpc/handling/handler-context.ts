import {
  type ContextValues,
  createContextValues,
  type HandlerContext,
  type MethodImplSpec,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import { CallSignal } from "./call-signal.ts";

/** A method that is served, under the name of the protocol that calls come by. */
export interface HandledMethod {
  readonly spec: MethodImplSpec;
  readonly url: string;
  readonly protocolName: string;
}

/** What its caller says of a call besides the request; the metadata is read when somebody asks for it. */
export interface AskedCall {
  readonly header: Headers;
  readonly timeoutMs: number | undefined;
  /** What is known of it before it is read. */
  readonly values?: ContextValues | undefined;
}

/**
 * The context that a handler gets. What costs something to make is made when it is asked for: the metadata and the signal;
 * a handler that does not look at its signal needs no timer either.
 */
export class CallContext implements HandlerContext {
  readonly method: HandlerContext["method"];
  readonly service: HandlerContext["service"];
  readonly requestMethod = "POST";
  readonly protocolName: string;
  readonly url: string;
  readonly timeoutMs: () => number | undefined;
  readonly #asked: AskedCall;
  #values: ContextValues | undefined;
  #responseHeader: Headers | undefined;
  #responseTrailer: Headers | undefined;
  #signal: CallSignal | undefined;
  #aborted: { reason: unknown } | undefined;

  constructor({ spec, url, protocolName }: HandledMethod, asked: AskedCall) {
    this.method = spec.method;
    this.service = spec.method.parent;
    this.url = url;
    this.protocolName = protocolName;
    this.#asked = asked;
    const { timeoutMs } = asked;
    const startedAt = performance.now();
    this.timeoutMs = () => (timeoutMs === undefined ? undefined : startedAt + timeoutMs - performance.now());
  }

  get requestHeader(): Headers {
    return this.#asked.header;
  }

  get responseHeader(): Headers {
    this.#responseHeader ??= new Headers();
    return this.#responseHeader;
  }

  get responseTrailer(): Headers {
    this.#responseTrailer ??= new Headers();
    return this.#responseTrailer;
  }

  /** The metadata of the answer, as far as anybody has touched it. */
  get answered(): { header: Headers | undefined; trailer: Headers | undefined } {
    return { header: this.#responseHeader, trailer: this.#responseTrailer };
  }

  get values(): ContextValues {
    this.#values ??= this.#asked.values ?? createContextValues();
    return this.#values;
  }

  get signal(): AbortSignal {
    if (!this.#signal) {
      this.#signal = new CallSignal(undefined, this.timeoutMs());
      if (this.#aborted) this.#signal.abort(this.#aborted.reason);
    }
    return this.#signal.signal;
  }

  /** Tells the handler that its call is over before its end. */
  abort(reason: unknown): void {
    this.#aborted ??= { reason };
    this.#signal?.abort(reason);
  }

  end(): void {
    this.#signal?.end();
  }

  /** The context as interceptors have changed it with the request that they passed on; itself when they changed the message alone. */
  from(request: Pick<UnaryRequest | StreamRequest, "service" | "header" | "signal" | "contextValues">): HandlerContext {
    const isSame =
      request.service === this.service &&
      request.header === this.requestHeader &&
      request.signal === this.signal &&
      request.contextValues === this.values;
    if (isSame) return this;
    return {
      ...this.plain(),
      service: request.service,
      requestHeader: request.header,
      signal: request.signal,
      values: request.contextValues,
    };
  }

  /** The same as an object whose properties can be copied, which Connect's own invocation of streams does. */
  plain(): HandlerContext {
    const { method, service, requestMethod, protocolName, url, timeoutMs, values, signal } = this;
    const { requestHeader, responseHeader, responseTrailer } = this;
    const metadata = { requestHeader, responseHeader, responseTrailer };
    return { method, service, requestMethod, protocolName, url, timeoutMs, values, signal, ...metadata };
  }
}

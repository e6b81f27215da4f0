import { randomUUID } from "node:crypto";
import {
  deserializeMessage,
  type FetchLike,
  isJSONRPCErrorResponse,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type MessageExtraInfo,
  type RequestId,
  StreamableHTTPClientTransport,
  type Transport,
  type TransportSendOptions,
} from "@modelcontextprotocol/client";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { fromMarked, numberAsWritten } from "#runtime/schema/json/exact-json.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { TransportContext } from "../module.ts";
import { authorized } from "./authorized.ts";
import { followEvents } from "./event-stream.ts";
import { withExactNumbers } from "./exact-body.ts";
import { type OriginFetch, openOriginFetch } from "./origin-fetch.ts";
import { STREAM_ENDED } from "./stream-ended.ts";

const TERMINATE_TIMEOUT_MS = 1_000;
const RESUME_MS = { least: 500, most: 30_000 };

/**
 * The SDK's transport, with six cares:
 *
 * HTTP1  A stream of a request that ends without its answer is answered here with an error, at once.
 * HTTP2  The stream of unasked events is followed by `followEvents`: the SDK asks a server that closes it for ever at the same
 *     pace, and gives up silently on one that fails. The SDK is told that there is no such stream.
 * HTTP3  Closing ends the session at the server too, but waits no longer than a second for that.
 * HTTP4  A server that takes its first request for a notification is not waited for.
 * HTTP5  Numbers of a result keep their digits: the SDK parses them to doubles, so they pass it as marked strings.
 * HTTP6  A stream that can be resumed is asked for after a wait within bounds: a server names it, and may end the stream again at once.
 */
export class HttpTransport implements Transport {
  readonly hasPerRequestStream = true;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: <T extends JSONRPCMessage>(message: T, extra?: MessageExtraInfo) => void;
  readonly #origin: OriginFetch;
  readonly #request: OriginFetch["request"];
  readonly #inner: StreamableHTTPClientTransport;
  readonly #unanswered = new Set<RequestId>();
  readonly #ended = new AbortController();
  readonly #context: TransportContext;
  /** HTTP5: no server can guess it. */
  readonly #mark = `${randomUUID()}:`;
  #hasMarked = false;
  #closed: Promise<void> | undefined;
  /** Why a stream was left that ends now: the SDK does not say. */
  #cutFor: string | undefined;

  constructor(url: URL, headers: Readonly<Record<string, string>>, context: TransportContext) {
    this.#context = context;
    this.#origin = openOriginFetch(context, ({ message }) => {
      this.#cutFor = message;
    });
    this.#request = authorized(this.#origin.request, context.authorization);
    this.#inner = new StreamableHTTPClientTransport(url, {
      requestInit: { headers },
      fetch: (target, init) => this.#fetch(target, init),
      reconnectionScheduler: (resume, wantedMs) =>
        startTimer(Math.min(Math.max(wantedMs, RESUME_MS.least), RESUME_MS.most), resume), // HTTP6
    });
    this.#inner.onclose = () => this.onclose?.();
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onmessage = (message) => this.#deliver(message);
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  async send(message: JSONRPCMessage, options: TransportSendOptions = {}): Promise<void> {
    if (!isJSONRPCRequest(message) || message.method === "subscriptions/listen")
      return this.#inner.send(message, sendOptions(options));
    this.#unanswered.add(message.id);
    const onRequestStreamEnd = () => {
      options.onRequestStreamEnd?.();
      this.#answerUnanswered(message.id);
    };
    try {
      await this.#inner.send(message, sendOptions({ ...options, onRequestStreamEnd }));
    } catch (error) {
      this.#unanswered.delete(message.id);
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#ended.abort();
    await comesWithin(TERMINATE_TIMEOUT_MS, this.#inner.terminateSession()).catch(() => {}); // HTTP3; the server forgets it by itself
    await this.#inner.close();
    await this.#origin[Symbol.asyncDispose]();
  }

  #fetch: FetchLike = async (url, init = {}) => {
    const headers = new Headers(init.headers);
    const isForEvents = init.method === "GET" && !headers.has("last-event-id");
    if (isForEvents) {
      this.#followEvents(url, headers);
      return new Response(null, { status: 405 }); // HTTP2
    }
    const response = await this.#request(url, init);
    if (response.status === 202 && headers.get("mcp-method") === "server/discover")
      throw new Error("the server answered server/discover with HTTP 202, and nothing else"); // HTTP4
    return withExactNumbers(response, this.#mark, () => {
      this.#hasMarked = true;
    });
  };

  #followEvents(url: string | URL, headers: Headers): void {
    const onTrouble = (error: unknown) =>
      this.#context.logger.debug(`the stream of events of ${url} broke: ${messageFromUnknown(error)}`);
    void followEvents({
      signal: this.#ended.signal,
      onTrouble,
      request: (lastEventId, signal) => {
        const asked = new Headers(headers);
        if (lastEventId) asked.set("last-event-id", lastEventId);
        return this.#request(url, { method: "GET", headers: asked, signal });
      },
      onData: (data) => {
        try {
          this.#deliver(deserializeMessage(data));
        } catch (error) {
          onTrouble(error);
        }
      },
      // Whatever changed in the gap: the list is read again.
      onReopened: () => this.#deliver({ jsonrpc: "2.0", method: "notifications/tools/list_changed" }),
    });
  }

  #deliver(message: JSONRPCMessage): void {
    const isAnswer = isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message);
    if (isAnswer && message.id !== undefined) this.#unanswered.delete(message.id);
    this.onmessage?.(this.#hasMarked ? this.#unmarked(message) : message);
  }

  /** HTTP5: what is no result is for the SDK alone, which knows no other numbers than doubles. */
  #unmarked(message: JSONRPCMessage): JSONRPCMessage {
    const numberFrom = "result" in message ? numberAsWritten : Number;
    return fromMarked(message, this.#mark, numberFrom) as JSONRPCMessage;
  }

  /** HTTP1 */
  #answerUnanswered(id: RequestId): void {
    if (!this.#unanswered.delete(id)) return;
    const message = this.#cutFor ?? "the server ended the stream without an answer";
    this.#cutFor = undefined;
    this.onmessage?.({ jsonrpc: "2.0", id, error: { code: -32_000, message, data: { reason: STREAM_ENDED } } });
  }
}

/** The SDK's transport distinguishes what is absent from what is undefined. */
function sendOptions(options: TransportSendOptions): Parameters<StreamableHTTPClientTransport["send"]>[1] {
  const { relatedRequestId: _, ...rest } = options;
  const given = Object.entries(rest).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given);
}

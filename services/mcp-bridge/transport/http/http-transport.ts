import {
  type FetchLike,
  isJSONRPCRequest,
  type JSONRPCMessage,
  type MessageExtraInfo,
  type RequestId,
  StreamableHTTPClientTransport,
  type Transport,
  type TransportSendOptions,
} from "@modelcontextprotocol/client";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { jsonFrom } from "#runtime/schema/json-object.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { startTimer } from "#runtime/time/timer.ts";
import { messagesFrom } from "../channel.ts";
import type { TransportContext } from "../module.ts";
import { authorized } from "./authorized.ts";
import { followEvents } from "./event-stream.ts";
import { type OriginFetch, openOriginFetch } from "./origin-fetch.ts";
import { shownResponse } from "./shown-body.ts";
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
 * HTTP4  A server that takes a request for a notification is not waited for: its answer can come nowhere else.
 * HTTP5  Answers are read as on every channel (`messagesFrom`): the SDK would lose digits of their numbers, and lets a call wait for one
 *     of an odd form. It is shown an empty result, whose place the answer takes.
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
  /** Requests, and what was read as the answer to one (HTTP5). */
  readonly #unanswered = new Map<RequestId, JSONRPCMessage | undefined>();
  readonly #ended = new AbortController();
  readonly #context: TransportContext;
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
    this.#inner.onmessage = (message) =>
      this.#deliver(("result" in message && this.#unanswered.get(message.id)) || message);
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
    this.#unanswered.set(message.id, undefined);
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
    const sent = response.status === 202 && typeof init.body === "string" && jsonFrom(init.body);
    if (isJSONRPCRequest(sent)) {
      void response.body?.cancel().catch(() => {}); // HTTP4: what it may still say is no answer
      throw new Error(`the server answered ${sent.method} with HTTP 202, and nothing else`);
    }
    return shownResponse(response, (text) => this.#shown(text));
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
        for (const message of messagesFrom(data))
          if (message) this.#deliver(message);
          else onTrouble(new Error(`not a message of MCP: ${data.slice(0, 200)}`));
      },
      // Whatever changed in the gap: the list is read again.
      onReopened: () => this.#deliver({ jsonrpc: "2.0", method: "notifications/tools/list_changed" }),
    });
  }

  /**
   * HTTP5: what the SDK is shown. What is no message stays, for it to say what is wrong; nor is an event without data one, by whose id it
   * resumes a stream.
   */
  #shown(text: string): string[] {
    const messages = messagesFrom(text);
    if (messages.length === 0) return [text];
    return messages.map((message) => {
      if (message === undefined) return text;
      if ("method" in message || message.id === undefined || !this.#unanswered.has(message.id))
        return messages.length === 1 ? text : JSON.stringify(message);
      this.#unanswered.set(message.id, message);
      return JSON.stringify({ jsonrpc: "2.0", id: message.id, result: {} });
    });
  }

  #deliver(message: JSONRPCMessage): void {
    if (!("method" in message) && message.id !== undefined) this.#unanswered.delete(message.id);
    this.onmessage?.(message);
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

import { create } from "@bufbuild/protobuf";
import {
  type ExecuteToolRequest,
  type ExecuteToolResponse,
  ExecuteToolResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { createEventQueue } from "#runtime/collections/event-queue.ts";
import type { Answer } from "../calls/answer.ts";
import type { Execute } from "./execution.ts";

/** A call that is under way or was answered a moment ago, and all who want to know. */
interface JoinedCall {
  readonly watchers: Set<(event: ExecuteToolResponse) => void>;
  readonly outcome: Promise<ExecuteToolResponse>;
  readonly abort: AbortController;
  isOver: boolean;
}

/** How many events of a call may wait for a slow reader. */
const EVENT_LIMIT = 1_000;
/** How long an answer is kept for a second call with the same id, and how many, and how large. */
const KEPT_MS = 60_000;
const KEPT_COUNT = 512;
const KEPT_LENGTH = 64 * 1024;

/** Runs calls by their ids: a second one with the same id joins the first, or gets its answer. */
export class ToolCalls {
  readonly #execute: Execute;
  readonly #calls = new Map<string, JoinedCall>();

  constructor(execute: Execute) {
    this.#execute = execute;
  }

  /** Progress and logs, then exactly one result. When the last reader leaves before it, the call is canceled. */
  async *run(
    request: ExecuteToolRequest,
    options: { traceId: string; signal: AbortSignal },
  ): AsyncGenerator<ExecuteToolResponse> {
    options.signal.throwIfAborted();
    const call = this.#join(request, options.traceId);
    const queue = createEventQueue<ExecuteToolResponse>({ limit: EVENT_LIMIT });
    const onAbort = () => queue.end(options.signal.reason);
    call.watchers.add(queue.push);
    options.signal.addEventListener("abort", onAbort, { once: true });
    call.outcome.then(
      (event) => {
        queue.push(event);
        queue.end();
      },
      (error) => queue.end(error),
    );
    try {
      yield* queue;
    } finally {
      options.signal.removeEventListener("abort", onAbort);
      call.watchers.delete(queue.push);
      if (call.watchers.size === 0 && !call.isOver) call.abort.abort(options.signal.reason);
    }
  }

  #join(request: ExecuteToolRequest, traceId: string): JoinedCall {
    const key = keyOf(request);
    const found = this.#calls.get(key);
    if (found && !found.abort.signal.aborted) return found;
    const watchers = new Set<(event: ExecuteToolResponse) => void>();
    const abort = new AbortController();
    const tell = (event: ExecuteToolResponse) => {
      for (const watcher of watchers) watcher(event);
    };
    const answer = this.#execute(request, { traceId, tell, signal: abort.signal });
    const call: JoinedCall = { watchers, abort, outcome: answer.then(eventFromAnswer), isOver: false };
    this.#calls.set(key, call);
    call.outcome.then(
      (event) => this.#keep(key, call, event),
      () => this.#forget(key, call),
    );
    return call;
  }

  /** An answer stays for a while, unless it is large or there are too many. */
  #keep(key: string, call: JoinedCall, { event }: ExecuteToolResponse): void {
    call.isOver = true;
    const isLarge = event.case === "result" && event.value.outputJson.length > KEPT_LENGTH;
    if (isLarge || this.#calls.size > KEPT_COUNT) this.#forget(key, call);
    else setTimeout(() => this.#forget(key, call), KEPT_MS).unref();
  }

  #forget(key: string, call: JoinedCall): void {
    call.isOver = true;
    if (this.#calls.get(key) === call) this.#calls.delete(key);
  }
}

function keyOf({ callId, scope, source, tool }: ExecuteToolRequest): string {
  return JSON.stringify([scope?.principal ?? "", scope?.sessionId ?? "", callId, source?.name ?? "", tool]);
}

function eventFromAnswer(answer: Answer): ExecuteToolResponse {
  const isError = answer.kind === "error";
  const outputJson = answer.kind === "error" ? JSON.stringify({ error: answer.error }) : answer.resultJson;
  const { calls: callCount = 0, ...usage } = answer.used ?? {};
  const value = { outputJson, isError, callCount, ...(answer.used && { usage }) };
  return create(ExecuteToolResponseSchema, { event: { case: "result", value } });
}

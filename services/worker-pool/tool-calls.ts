import { create } from "@bufbuild/protobuf";
import {
  type CallToolRequest,
  type CallToolResponse,
  CallToolResponseSchema,
} from "#gen/toolbus/tool/v1/provider_pb.ts";
import { createEventQueue } from "./event-queue.ts";
import type { Execute } from "./execution.ts";
import type { Answer } from "./worker/worker.ts";

/** A call that is under way or was answered a moment ago, and all who want to know. */
interface JoinedCall {
  readonly watchers: Set<(event: CallToolResponse) => void>;
  readonly outcome: Promise<CallToolResponse>;
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
export function createToolCalls(execute: Execute) {
  const calls = new Map<string, JoinedCall>();

  function open(request: CallToolRequest, traceId: string): JoinedCall {
    const key = keyOf(request);
    const found = calls.get(key);
    if (found && !found.abort.signal.aborted) return found;
    const watchers = new Set<(event: CallToolResponse) => void>();
    const abort = new AbortController();
    const tell = (event: CallToolResponse) => {
      for (const watcher of watchers) watcher(event);
    };
    const answer = execute(request, { traceId, tell, signal: abort.signal });
    const call: JoinedCall = { watchers, abort, outcome: answer.then(eventFromAnswer), isOver: false };
    calls.set(key, call);
    call.outcome.then(
      (event) => keep(key, call, event),
      () => forget(key, call),
    );
    return call;
  }

  function forget(key: string, call: JoinedCall): void {
    call.isOver = true;
    if (calls.get(key) === call) calls.delete(key);
  }

  /** An answer stays for a while, unless it is large or there are too many. */
  function keep(key: string, call: JoinedCall, { event }: CallToolResponse): void {
    call.isOver = true;
    const isLarge = event.case === "result" && event.value.outputJson.length > KEPT_LENGTH;
    if (isLarge || calls.size > KEPT_COUNT) forget(key, call);
    else setTimeout(() => forget(key, call), KEPT_MS).unref();
  }

  /** Progress and logs, then exactly one result. When the last reader leaves before it, the call is cancelled. */
  async function* run(
    request: CallToolRequest,
    options: { traceId: string; signal: AbortSignal },
  ): AsyncGenerator<CallToolResponse> {
    const call = open(request, options.traceId);
    const queue = createEventQueue<CallToolResponse>({ limit: EVENT_LIMIT });
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

  return { run };
}

function keyOf({ callId, scope, source, tool }: CallToolRequest): string {
  return JSON.stringify([scope?.principal ?? "", scope?.sessionId ?? "", callId, source?.name ?? "", tool]);
}

function eventFromAnswer(answer: Answer): CallToolResponse {
  const isError = answer.kind === "error";
  const outputJson = answer.kind === "error" ? JSON.stringify({ error: answer.error }) : answer.resultJson;
  return create(CallToolResponseSchema, { event: { case: "result", value: { outputJson, isError } } });
}

import { randomUUID } from "node:crypto";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { CallOptions, Client } from "@connectrpc/connect";
import type { Notification } from "@modelcontextprotocol/server";
import { CallerToolCancellationReasonSchema, type CallerToolRequest } from "#gen/toolbus/caller/v1/caller_pb.ts";
import type { CallerService, WatchCallerResponse } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { resumed } from "#runtime/rpc/watching/resumed.ts";
import { enumWord } from "#runtime/schema/enum-word.ts";
import { parseExactly } from "#runtime/schema/json/exact-json.ts";
import { openEnding } from "#runtime/time/ending.ts";

/** Methods of their own, since `notifications/message` needs a log level in 2026-07-28 (CTR-11). */
export const REQUESTED = "notifications/caller_tool_request";
export const CANCELED = "notifications/caller_tool_canceled";

export interface AttachedCaller {
  readonly callers: Client<typeof CallerService>;
  readonly sessionId: string;
  readonly options: CallOptions & { readonly signal: AbortSignal };
  readonly notify: (notification: Notification) => Promise<void>;
}

/** How long a stream that lost its relay looks for another one: the client that waits for its agent has no other stream. */
const PATIENCE_MS = 30_000;

/** Tells the client what the agent asks of it, from when it resolves until it is disposed, or the client has left. */
export async function attachCaller(caller: AttachedCaller): Promise<Disposable> {
  const { callers, sessionId, options, notify } = caller;
  const ending = openEnding(options.signal);
  const { signal } = ending;
  const streamId = randomUUID();
  const told = new Set<string>();
  const attached = Promise.withResolvers<void>();

  async function* open(): AsyncGenerator<WatchCallerResponse> {
    yield* callers.watchCaller({ sessionId, streamId }, { ...options, signal });
    throw connectError("unavailable", "the stream ended", { reason: "SERVICE_UNAVAILABLE" });
  }

  async function read(): Promise<void> {
    for await (const { event } of resumed({ open, patienceMs: PATIENCE_MS, signal })) {
      if (event.case === "attached") attached.resolve();
      if (event.case === "canceled") {
        const { requestId, reason } = event.value;
        const why = enumWord(CallerToolCancellationReasonSchema, reason);
        await notify(notificationOf(CANCELED, { request_id: requestId, session_id: sessionId, reason: why }));
      }
      // one that is open is sent again when the stream is opened again
      if (event.case === "request" && !told.has(event.value.requestId)) {
        told.add(event.value.requestId);
        await notify(notificationOf(REQUESTED, paramsOf(event.value)));
      }
    }
  }

  const reading = read();
  reading.catch(() => {}); // the agent is told that its caller is gone
  await Promise.race([attached.promise, reading]);
  return { [Symbol.dispose]: () => ending.end() };
}

function paramsOf({ requestId, sessionId, tool, argumentsJson, expireTime }: CallerToolRequest) {
  return {
    ...{ request_id: requestId, session_id: sessionId, tool, arguments: parseExactly(argumentsJson || "{}") },
    ...(expireTime && { expires_at: timestampDate(expireTime).toISOString() }),
  };
}

/** `type` is the method's last part, as callers elsewhere see it. */
function notificationOf(method: string, params: Record<string, unknown>): Notification {
  return { method, params: { type: method.slice(method.indexOf("/") + 1), ...params } };
}

/*
 * The SDK takes no task for the result of a call, refuses answers that are odd but harmless, and lets a call wait for one that it
 * cannot read. So it is shown what it takes: results that hold the server's own, and errors.
 */
import { randomUUID } from "node:crypto";
import type { CallToolResult, JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { isObject } from "#runtime/schema/json-object.ts";
import { unreadable } from "../../transport/channel.ts";

/** No server can put anything under a key that it does not know. */
const HELD_KEY = `toolbus/held-${randomUUID()}`;

type Held = { kind: "task" | "answer"; value: Record<string, unknown> };

/** A result of a call that holds what came in its place. */
export function holding(kind: Held["kind"], value: object): CallToolResult {
  return { content: [], _meta: { [HELD_KEY]: { kind, value } } };
}

/** What a result holds of that kind. */
export function heldIn({ _meta }: Pick<CallToolResult, "_meta">, kind: Held["kind"]): Held["value"] | undefined {
  const held = _meta?.[HELD_KEY] as Held | undefined;
  return held?.kind === kind ? held.value : undefined;
}

export function showAnswers(transport: Transport): void {
  let take: Transport["onmessage"];
  Object.defineProperty(transport, "onmessage", {
    configurable: true,
    get: () => take,
    set(given: Transport["onmessage"]) {
      take = given && ((message, extra) => given(shown(message) as typeof message, extra));
    },
  });
}

/** As JSON-RPC wants it: what the SDK cannot read, it does not take for an answer. */
function shownError({ code, message, data }: Record<string, unknown>) {
  return {
    code: Number.isSafeInteger(code) ? Number(code) : -32_603,
    message: typeof message === "string" ? message : "the server says that it failed, and not why",
    ...(data !== undefined && { data }),
  };
}

function shown(message: JSONRPCMessage): JSONRPCMessage {
  const { id, method, result, error } = message as Record<string, unknown>;
  if (method !== undefined || id === undefined) return message;
  const answer = { jsonrpc: "2.0", id } as const;
  if (isObject(error)) return { ...answer, error: shownError(error) } as JSONRPCMessage;
  if (!isObject(result)) return unreadable(id, result === undefined ? "neither a result nor an error" : "no object");
  const { resultType = "complete" } = result;
  const kind = resultType === "task" ? "task" : "answer";
  const isHeld =
    kind === "task" || (resultType === "complete" && ("content" in result || "structuredContent" in result));
  if (!isHeld) return { ...answer, result } as JSONRPCMessage;
  return { ...answer, result: { resultType: "complete", ...holding(kind, result) } } as unknown as JSONRPCMessage;
}

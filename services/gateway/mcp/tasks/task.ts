import { durationMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Task, TaskStatus } from "@modelcontextprotocol/server";
import { Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { type ToolCall, ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { errorTextOf } from "#runtime/results/error-result.ts";

/** How soon a client should look again. */
export const POLL_MS = 1_000;
/** So long the record of a call that has ended is kept at least, and so long at most after it was written. */
const KEPT_MS = 3_600_000;
export const LONGEST_MS = 30 * 24 * 3_600_000;
const MAX_MESSAGE = 1_000;

/** Nothing about it changes any more. */
export function isOver({ state }: ToolCall): boolean {
  const { RESOLVED, EXPIRED, CANCELED } = ToolCallState;
  return state === RESOLVED || state === EXPIRED || state === CANCELED;
}

/** How a recorded call stands. `isAsking`: it waits for an answer that the client's person can give. */
export function statusOf(call: ToolCall, isAsking = false): TaskStatus {
  if (!isOver(call)) return isAsking ? "input_required" : "working";
  if (call.state === ToolCallState.CANCELED || call.result?.reason === Reason.CANCELED) return "cancelled";
  return call.state === ToolCallState.RESOLVED && !call.result?.isError ? "completed" : "failed";
}

/** A recorded call as clients of 2025-11-25 read it. */
export function taskFrom(call: ToolCall, isAsking = false): Task {
  const [createdMs, updatedMs] = [msOf(call.createTime), msOf(call.updateTime ?? call.createTime)];
  const statusMessage = messageOf(call);
  return {
    taskId: call.callId,
    status: statusOf(call, isAsking),
    ...(statusMessage !== "" && { statusMessage: statusMessage.slice(0, MAX_MESSAGE) }),
    createdAt: new Date(createdMs).toISOString(),
    lastUpdatedAt: new Date(updatedMs).toISOString(),
    ttl: Math.min(askedMs(call), isOver(call) ? updatedMs - createdMs + KEPT_MS : LONGEST_MS),
    pollInterval: POLL_MS,
  };
}

/** Whether its client wants it no more. One that has not ended is there in any case. */
export function isForgotten(call: ToolCall, nowMs: number): boolean {
  return isOver(call) && msOf(call.createTime) + askedMs(call) <= nowMs;
}

/** How long its client wants it, from its creation on. */
function askedMs({ task }: ToolCall): number {
  return task?.ttl === undefined ? Number.POSITIVE_INFINITY : durationMs(task.ttl);
}

function msOf(time: Timestamp | undefined): number {
  return time === undefined ? 0 : timestampMs(time);
}

function messageOf(call: ToolCall): string {
  if (isOver(call)) return call.result?.isError ? errorTextOf(call.result.outputJson) : "";
  if (call.state === ToolCallState.STARTED || call.spaceId === "") return "";
  return `${call.tool} waits for an answer in the space ${call.spaceId}`;
}

/** What a client gives as conversation: refused where it cannot be right, with its place. What only looks odd is made fit. */

import { type FunctionCall, type FunctionCallOutput, type Item, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type ReasonName, refuse } from "#runtime/failure/failure.ts";
import { type Continuation, readHistory } from "../session/history.ts";
import type { SessionQueues } from "../session/queue.ts";
import type { RunLog } from "./journal.ts";

export function refuseEmptyInput(input: readonly Item[]): void {
  if (input.length === 0)
    refuse("invalid_argument", "a run needs input", {
      reason: "INVALID_REQUEST",
      fieldViolations: [{ field: "input", message: "is empty" }],
    });
}

export function refuseUnfitInput(input: readonly Item[]): void {
  const firstCalls = new Map<string, number>();
  for (const [index, { item }] of input.entries()) {
    if (item.case === "functionCall" && !firstCalls.has(item.value.callId)) firstCalls.set(item.value.callId, index);
  }
  for (const [index, { item }] of input.entries()) {
    const place = `input[${index}]`;
    // no provider takes a message without words; one of the assistant is left out
    const isSilent = item.case === "message" && item.value.role !== Role.ASSISTANT && item.value.text.trim() === "";
    if (item.case === undefined || isSilent) refuseAt(place, "holds nothing", "INVALID_REQUEST");
    if (item.case === "functionCall") refuseUnfitCall(item.value, { place, index, firstCalls });
    if (item.case === "functionCallOutput") refuseUnfitOutput(item.value, { place, index, firstCalls });
  }
}

interface Standing {
  readonly place: string;
  readonly index: number;
  /** Where in the input the calls stand, by their ids. */
  readonly firstCalls: ReadonlyMap<string, number>;
}

function refuseUnfitCall({ callId, name }: FunctionCall, { place, index, firstCalls }: Standing): void {
  if (callId.trim() === "") refuseAt(`${place}.function_call.call_id`, "is empty");
  if (name.trim() === "") refuseAt(`${place}.function_call.name`, "is empty");
  const first = firstCalls.get(callId);
  if (first !== index) refuseAt(`${place}.function_call.call_id`, `is that of input[${first}]`);
}

function refuseUnfitOutput({ callId, result }: FunctionCallOutput, { place, index, firstCalls }: Standing): void {
  const path = `${place}.function_call_output`;
  const call = firstCalls.get(callId) ?? -1;
  if (call > index) refuseAt(path, `stands before its call, input[${call}]`);
  if (result === undefined) refuseAt(`${path}.result`, "is missing");
  refuseClaims(result, path);
  if (!isJson(result.outputJson)) refuseAt(`${path}.result.output_json`, "is not JSON", "RESULT_INVALID"); // LOOP-8
}

/** Where a result is stored, what it cost and what follows from it is known from its execution alone. */
function refuseClaims({ storedReference, endsRun, usage, calls }: ToolResult, path: string): void {
  const claims = {
    stored_reference: storedReference !== "",
    ends_run: endsRun,
    usage: usage !== undefined,
    calls: calls > 0,
  };
  const [claimed] = Object.entries(claims).find(([, isClaimed]) => isClaimed) ?? [];
  if (claimed !== undefined) refuseAt(`${path}.result.${claimed}`, "is not for a client to say");
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function refuseAt(field: string, what: string, reason: ReasonName = "INVALID_REQUEST"): never {
  return refuse("invalid_argument", `${field} ${what}`, { reason, fieldViolations: [{ field, message: what }] });
}

/** Input may answer calls that a former run left open, as one in single-turn mode does. */
export async function refuseUnknownCalls(
  { log, queues }: { log: RunLog; queues: SessionQueues },
  previous: Continuation,
  input: readonly Item[],
): Promise<void> {
  const answered = callIdsOf("functionCallOutput", input);
  if (answered.length === 0) return;
  const items = await readHistory(queues, log, previous);
  refuseAnsweredTwice([...callIdsOf("functionCallOutput", items), ...answered], answered);
  const known = new Set(callIdsOf("functionCall", [...items, ...input]));
  const unknown = answered.find((callId) => !known.has(callId));
  if (unknown === undefined) return;
  refuse("not_found", `call ${unknown}, which the input answers, is unknown in this conversation`, {
    reason: "CALL_NOT_FOUND",
    metadata: { call_id: unknown },
  });
}

/** The first answer of a call stands, whoever gave it. */
function refuseAnsweredTwice(all: readonly string[], answered: readonly string[]): void {
  const seen = new Set<string>();
  const twice = new Set(all.filter((callId) => seen.size === seen.add(callId).size));
  const callId = answered.find((candidate) => twice.has(candidate));
  if (callId === undefined) return;
  refuse("failed_precondition", `call ${callId}, which the input answers, has its answer already`, {
    reason: "CALL_ALREADY_RESOLVED",
    metadata: { call_id: callId },
  });
}

export function callIdsOf(kind: "functionCall" | "functionCallOutput", items: readonly Item[]): string[] {
  return items.flatMap(({ item }) => (item.case === kind ? [item.value.callId] : []));
}

/** What a client gives as conversation: refused where it cannot be right, with its place. What only looks odd is made fit. */

import { create } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { File } from "#gen/toolbus/content/v1/content_pb.ts";
import { type FunctionCallOutput, type Item, ItemSchema, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import type { InputCall, InputItem, InputMessage, ToolOutput } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { onFirstUse } from "#runtime/collections/on-first-use.ts";
import type { Taker } from "#runtime/collections/turns/own-turn.ts";
import { textOfContent } from "#runtime/content/text.ts";
import { type ReasonName, refuse, refuseRequest } from "#runtime/failure/failure.ts";
import { isSameResult } from "#runtime/results/shortened.ts";
import { faultOfOutcome, resultFromOutcome, submissionFrom } from "#runtime/results/submission.ts";
import { openSlices } from "#runtime/rpc/handling/messages/slices.ts";
import type { RunLog } from "../../log/journal.ts";
import { callIdsOf } from "../../log/state/view.ts";
import { type Continuation, readHistory, tokensBefore } from "../../sessions/history/history.ts";
import type { SessionQueues } from "../../sessions/queue.ts";
import type { BoundResult } from "../answer/outputs.ts";

export function refuseEmptyInput(input: readonly Item[]): void {
  if (input.length === 0) refuseRequest("a run needs input", { field: "input", message: "is empty" });
}

/** The input as it stands in the conversation. */
export async function itemsFromInput(input: readonly InputItem[], taker: Taker): Promise<Item[]> {
  const items: Item[] = [];
  const nextStep = openSlices();
  for (const [index, { item }] of input.entries()) {
    const place = `input[${index}]`;
    if (item.case === undefined) refuseAt(place, "holds nothing");
    if (item.case === "message") items.push(itemFromMessage(item.value, place));
    if (item.case === "call") items.push(itemFromCall(item.value));
    if (item.case !== "output") continue;
    await nextStep();
    items.push(await itemFromOutput(item.value, `${place}.output`, taker));
  }
  return items;
}

function itemFromMessage({ role, content }: InputMessage, place: string): Item {
  if (role !== Role.USER && role !== Role.ASSISTANT)
    refuseAt(`${place}.message.role`, "must be ROLE_USER or ROLE_ASSISTANT"); // requests on the bus were not validated before
  const unknown = content.findIndex(({ part }) => part.case === undefined);
  if (unknown >= 0) refuseAt(`${place}.message.content[${unknown}]`, "is of a kind that is not known here");
  const file = content.findIndex(({ part }) => part.case === "file");
  if (file >= 0 && role === Role.ASSISTANT)
    refuseAt(`${place}.message.content[${file}]`, "is a file, which users alone give");
  const lost = content.findIndex(({ part }) => part.case === "file" && !hasPlace(part.value)); // no prompt takes it
  if (lost >= 0) refuseAt(`${place}.message.content[${lost}].file.url`, "is no address");
  // no provider takes a message of nothing; one of the assistant is left out
  if (role === Role.USER && file < 0 && textOfContent(content).trim() === "") refuseAt(place, "holds nothing");
  return create(ItemSchema, { item: { case: "message", value: { role, content } } });
}

const hasPlace = ({ source }: File) => source.case !== "url" || URL.canParse(source.value);

function itemFromCall({ callId, name, argumentsJson }: InputCall): Item {
  return create(ItemSchema, { item: { case: "functionCall", value: { callId, name, argumentsJson } } });
}

async function itemFromOutput(
  { callId, submissionId, outcome }: ToolOutput,
  place: string,
  taker: Taker,
): Promise<Item> {
  if (submissionId !== "")
    refuseAt(`${place}.submission_id`, "is not for input: a repetition is told by the idempotency_key");
  const submission = submissionFrom({ submissionId, outcome }, callId);
  const fault = await faultOfOutcome(submission.outcome, taker);
  if (fault !== undefined) refuseAt(`${place}.result_json`, fault, "RESULT_INVALID"); // LOOP-8
  return create(ItemSchema, {
    item: { case: "functionCallOutput", value: { callId, result: resultFromOutcome(submission.outcome) } },
  });
}

function refuseAt(field: string, what: string, reason: ReasonName = "INVALID_REQUEST"): never {
  return refuse("invalid_argument", `${field} ${what}`, { reason, fieldViolations: [{ field, message: what }] });
}

/**
 * Input may answer calls that it tells of itself, and those that a former run left open, as one in single-turn mode does. They are looked
 * for as far back as the agent's models are shown. Clients that send all outputs each time may repeat those that were accepted: in the input
 * that is returned, these have no result, as the log has it already.
 */
export async function inputWithKnownCalls(
  { log, queues }: { log: RunLog; queues: SessionQueues },
  previous: Continuation,
  input: Item[],
  readAgent: () => Promise<Agent>,
): Promise<Item[]> {
  const all = outputsOf(input);
  const own = new Set(callIdsOf("functionCall", input));
  const outputs = all.filter(({ callId }) => !own.has(callId));
  refuseOtherAnswers([], all);
  if (outputs.length === 0) return input;
  const maxTokens = onFirstUse(async () => tokensBefore(await readAgent()));
  const items = await readHistory(queues, log, previous, maxTokens);
  const before = outputsOf(items);
  refuseOtherAnswers(before, outputs);
  const answered = new Set(before.map(({ callId }) => callId));
  const repeated = new Set(outputs.filter(({ callId }) => answered.has(callId)));
  if (repeated.size === input.length) refuseAnswered(outputs[0]!.callId); // nothing is new
  const known = new Set(callIdsOf("functionCall", items));
  const unknown = outputs.find(({ callId }) => !known.has(callId))?.callId;
  if (unknown !== undefined)
    refuse("not_found", `call ${unknown}, which the input answers, is unknown in this conversation`, {
      reason: "CALL_NOT_FOUND",
      metadata: { call_id: unknown },
    });
  return input.map((given) => {
    if (given.item.case !== "functionCallOutput" || !repeated.has(given.item.value)) return given;
    return create(ItemSchema, { item: { case: "functionCallOutput", value: { callId: given.item.value.callId } } });
  });
}

/** The input of a run of the session, with outputs over the limit as they are shown. */
export async function boundedInput(
  input: readonly Item[],
  boundResult: BoundResult,
  sessionId: string,
): Promise<Item[]> {
  return Array.fromAsync(input, async (given) => {
    if (given.item.case !== "functionCallOutput" || given.item.value.result === undefined) return given;
    const result = await boundResult(given.item.value.result, sessionId);
    return create(ItemSchema, { item: { case: "functionCallOutput", value: { ...given.item.value, result } } });
  });
}

function outputsOf(items: readonly Item[]): FunctionCallOutput[] {
  return items.flatMap(({ item }) => (item.case === "functionCallOutput" && item.value.result ? [item.value] : []));
}

/** The first answer of a call counts. */
function refuseOtherAnswers(before: readonly FunctionCallOutput[], given: readonly FunctionCallOutput[]): void {
  const told = new Map(before.map(({ callId, result }) => [callId, result]));
  for (const { callId, result } of given) {
    const first = told.get(callId);
    if (first && result && !isSameResult(first, result)) refuseAnswered(callId);
    told.set(callId, result);
  }
}

function refuseAnswered(callId: string): never {
  refuse("failed_precondition", `call ${callId}, which the input answers, has its answer already`, {
    reason: "CALL_ALREADY_RESOLVED",
    metadata: { call_id: callId },
  });
}

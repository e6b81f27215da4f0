/**
 * How a tool call is shown in a space: as one message with the id `tool:<call>`, which changes while the call goes on.
 *
 *   draft ──▶ running ──▶ requires_action ──▶ complete | error
 *
 * - A call never goes back to an earlier state, and its first result stays.
 * - Watchers get `tool.started`, `tool.streaming` (the arguments so far, then all of them), `tool.done` and `tool.error`.
 * - While the model writes a call, the orchestrator shows it as a `draft`, whose arguments may be cut off. When the call is made,
 *   the router continues with that message, and later updates of the draft change nothing.
 * - A draft whose call is never made, or is refused, ends as `error` with the reason. This also holds for a draft that was not
 *   shown before: the orchestrator may be late.
 */
import { clone, create } from "@bufbuild/protobuf";
import {
  type SpaceEvent,
  SpaceEventSchema,
  type SpaceMessage,
  SpaceMessageSchema,
  type ToolMessage,
  ToolMessageSchema,
  ToolMessageState,
  ToolMessageStateSchema,
} from "#gen/toolbus/space/v1/space_pb.ts";
import { refuse, refuseRequest } from "#runtime/failure/failure.ts";
import { enumWord } from "#runtime/schema/enum-word.ts";
import type { LogDecision } from "../space/space-log.ts";
import { isFinal } from "../space/space-state.ts";

/** Ids of people's messages hold no colon, so that the two never meet. */
export function idOfToolMessage(callId: string): string {
  return `tool:${callId}`;
}

/**
 * What showing a call in this state means for the message that shows it, which `draft` is when there is none. Updates may
 * come twice and out of order: what is shown already, and what the call has left behind, have no effect. Of two results the
 * first stays.
 */
export function decideToolMessage(
  shown: SpaceMessage | undefined,
  update: ToolMessage,
  draft: () => SpaceMessage,
): LogDecision<SpaceMessage> {
  const before = shown && toolOf(shown);
  const after = before ? merged(before, update) : update;
  if (before && shown && !isAhead(before, after)) return { keep: shown };
  const message = shown ? clone(SpaceMessageSchema, shown) : draft();
  message.content = { case: "tool", value: after };
  const event = eventFrom(before?.state, after.state, message);
  return { append: create(SpaceEventSchema, { event }) };
}

export function toolOf(message: SpaceMessage): ToolMessage {
  if (message.content.case === "tool") return message.content.value;
  return refuse("already_exists", `message ${message.id} shows no tool call`, { reason: "MESSAGE_ID_REUSED" });
}

/** What an update leaves out stays as it is. */
function merged(before: ToolMessage, update: ToolMessage): ToolMessage {
  const after = clone(ToolMessageSchema, update);
  after.tool ||= before.tool;
  after.argumentsJson ||= before.argumentsJson;
  after.runId ||= before.runId;
  after.outputSchemaJson ||= before.outputSchemaJson;
  if (after.result === undefined && before.result !== undefined) after.result = before.result;
  return after;
}

/** A call that still runs may show more of its arguments. One that is made has left its draft behind. */
function isAhead(before: ToolMessage, after: ToolMessage): boolean {
  if (isFinal(before.state) || (after.argumentsIncomplete && !before.argumentsIncomplete)) return false;
  if (before.argumentsIncomplete && !after.argumentsIncomplete) return true;
  if (before.state !== after.state) return after.state > before.state;
  return after.state === ToolMessageState.RUNNING && before.argumentsJson !== after.argumentsJson;
}

type EventOfTool = Extract<SpaceEvent["event"], { case: `tool${string}` }>;

function eventFrom(before: ToolMessageState | undefined, after: ToolMessageState, value: SpaceMessage): EventOfTool {
  switch (after) {
    case ToolMessageState.RUNNING:
      return before === undefined ? { case: "toolStarted", value } : { case: "toolStreaming", value };
    case ToolMessageState.REQUIRES_ACTION:
      return { case: "toolRequiresAction", value };
    case ToolMessageState.COMPLETE:
      return { case: "toolDone", value };
    case ToolMessageState.ERROR:
      return { case: "toolError", value };
    default:
      return refuseRequest("message.state is not set", { field: "message.state", message: "is required" });
  }
}

/** As a model or a person reads it. */
export function wordOf(state: ToolMessageState): string {
  const isKnown = state !== ToolMessageState.UNSPECIFIED && state in ToolMessageStateSchema.value;
  return isKnown ? enumWord(ToolMessageStateSchema, state) : "unknown";
}

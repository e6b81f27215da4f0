import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { RunAccepted } from "#gen/toolbus/run/v1/run_event_pb.ts";
import {
  type FunctionCall,
  type FunctionTool,
  type Item,
  ItemSchema,
  Role,
  type Run,
  RunEndReason,
  RunSchema,
  RunState,
} from "#gen/toolbus/run/v1/run_pb.ts";
import { type Usage, UsageSchema } from "#gen/toolbus/tool/v1/usage_pb.ts";
import { shortened } from "#runtime/content/shortened.ts";
import { textContent, textOfContent } from "#runtime/content/text.ts";
import { type Amount, toldAmount } from "#runtime/money/money.ts";
import { type FoldedRun, openCallCount, openCalls, type Turn } from "./fold.ts";
import type { Spent } from "./spent.ts";

/** The run as its clients see it. */
export function runFromState(state: FoldedRun): Run {
  const { runId, accepted, phase, turns, eventCount, spent } = state;
  const ended = phase.kind === "ended" ? phase.ended : undefined;
  return create(RunSchema, {
    id: runId,
    sessionId: accepted.sessionId,
    agent: accepted.agent,
    state: statusFromState(state),
    endReason: ended?.endReason ?? RunEndReason.UNSPECIFIED,
    error: ended?.error ?? "",
    outputText: ended?.outputText ?? "",
    items: itemsFromState(state),
    requiredCalls: requiredCalls(state),
    turnCount: turns.length,
    usage: usageFromSpent(spent),
    createTime: timestampFromMs(state.acceptedAtMs),
    ...(phase.kind === "ended" && { endTime: timestampFromMs(phase.atMs) }),
    lastSequence: eventCount - 1,
    selfWakeCount: accepted.selfWakeCount,
    ...(state.draft && ended === undefined && { draft: state.draft }),
    ...(accepted.parent && { parent: accepted.parent }),
    ...(accepted.fork && { fork: accepted.fork }),
    inputText: inputTextOf(accepted),
  });
}

/** Characters of what a run was asked. */
const mostAsked = 300;

/** What the run was asked, shortened. */
export function inputTextOf({ input }: RunAccepted): string {
  const said = input.findLast(({ item }) => item.case === "message" && item.value.role === Role.USER)?.item;
  return said?.case === "message" ? shortened(textOfContent(said.value.content), mostAsked) : "";
}

/** Usage as clients see it. For a calling run, amounts in different currencies count as `maxCost`, all that it allowed. */
export function usageFromSpent({ cost, ...tokens }: Spent, maxCost?: Amount): Usage {
  const told = toldAmount(cost, maxCost);
  return create(UsageSchema, { ...tokens, ...(told && { cost: told }) });
}

/** A parked run whose outputs are all there asks for nothing: it waits for a process. */
export function statusFromState(state: FoldedRun): RunState {
  const { phase } = state;
  switch (phase.kind) {
    case "queued":
      return RunState.QUEUED;
    case "working":
      return RunState.IN_PROGRESS;
    case "parked":
      return openCallCount(state) > 0 ? RunState.REQUIRES_ACTION : RunState.QUEUED;
    case "ended":
      return phase.ended.state;
  }
}

/** What waited in the inbox, the input, and what came of it. */
export function itemsFromState(state: FoldedRun): Item[] {
  return [...openingItems(state), ...itemsFromTurns(state.turns), ...itemsCutOff(state)];
}

/** draft-4: what was said of a turn in the middle of which the run ended. */
export function itemsCutOff({ phase, draft }: Pick<FoldedRun, "phase" | "draft">): Item[] {
  if (phase.kind !== "ended" || draft === undefined) return [];
  const value = { role: Role.ASSISTANT, content: textContent(draft.text), incomplete: true };
  return [create(ItemSchema, { item: { case: "message", value } })];
}

/** What the run was given. Outputs that answer calls of an earlier run stand next to them, before events of the inbox. */
export function openingItems({ accepted: { input }, inbox }: Pick<FoldedRun, "accepted" | "inbox">): Item[] {
  const ownCallIds = new Set(callIdsOf("functionCall", input));
  const answersEarlier = ({ item }: Item) => item.case === "functionCallOutput" && !ownCallIds.has(item.value.callId);
  const own = input.filter((item) => !answersEarlier(item));
  return [...input.filter(answersEarlier), ...(inbox?.items ?? []), ...own];
}

/** After each turn's items its results, in the order of the calls. */
export function itemsFromTurns(turns: readonly Turn[]): Item[] {
  return turns.flatMap((turn) => [...turn.committed.items, ...outputsFromTurn(turn)]);
}

function outputsFromTurn({ calls, resultsByCallId }: Turn): Item[] {
  return calls.flatMap(({ callId }) => {
    const result = resultsByCallId.get(callId);
    if (result === undefined) return [];
    return create(ItemSchema, { item: { case: "functionCallOutput", value: { callId, result } } });
  });
}

/** What a user says, or what is told in its place. */
export function userItem(text: string): Item {
  return create(ItemSchema, { item: { case: "message", value: { role: Role.USER, content: textContent(text) } } });
}

/** Whether the client of the run executes this call. */
export function isFunctionToolCall(state: FoldedRun, call: FunctionCall): boolean {
  return functionToolOf(state, call) !== undefined;
}

/** The tool of the client that is called. */
export function functionToolOf({ accepted }: FoldedRun, { name }: FunctionCall): FunctionTool | undefined {
  return accepted.options?.functionTools.find((tool) => tool.name === name);
}

/** What a parked run waits for. */
function requiredCalls(state: FoldedRun): FunctionCall[] {
  if (state.phase.kind !== "parked") return [];
  return openCalls(state).filter((call) => isFunctionToolCall(state, call));
}

/** The text of the last turn, which is the answer when the run ends with it; what was said of it, when it ends in the middle. */
export function outputTextFromState({ turns, draft }: FoldedRun): string {
  if (draft !== undefined) return draft.text;
  return textOfItems(turns.at(-1)?.committed.items ?? []);
}

export function textOfItems(items: readonly Item[]): string {
  return items.map(({ item }) => (item.case === "message" ? textOfContent(item.value.content) : "")).join("");
}

/** The ids of the calls that the items make, or that they answer. */
export function callIdsOf(kind: "functionCall" | "functionCallOutput", items: readonly Item[]): string[] {
  return items.flatMap(({ item }) => (item.case === kind ? [item.value.callId] : []));
}

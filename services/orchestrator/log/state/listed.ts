/** A state without what no list of runs shows: it is folded on like any other, and takes little room however long its run is. */

import { create } from "@bufbuild/protobuf";
import { type RunAccepted, RunAcceptedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type FunctionCall, FunctionCallSchema, RunOptionsSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { FoldedRun, Turn } from "./fold.ts";
import { inputTextOf, isFunctionToolCall, userItem } from "./view.ts";

export function listedFrom(state: FoldedRun): FoldedRun {
  return {
    ...state,
    accepted: withShortInput(state.accepted),
    turns: state.turns.map((turn) => listedTurns.get(turn) ?? listedTurn(state, turn)),
    shown: [],
    ...{ inbox: undefined, compaction: undefined, draft: undefined, lost: undefined },
  };
}

const listedTurns = new WeakMap<Turn, Turn>();
const listedAccepted = new WeakMap<RunAccepted, RunAccepted>();

function withShortInput(accepted: RunAccepted): RunAccepted {
  const known = listedAccepted.get(accepted);
  if (known !== undefined) return known;
  const functionTools = (accepted.options?.functionTools ?? []).map(({ name }) => ({ name }));
  const options = create(RunOptionsSchema, { functionTools });
  const listed = create(RunAcceptedSchema, { ...accepted, input: [userItem(inputTextOf(accepted))], options });
  listedAccepted.set(accepted, listed);
  listedAccepted.set(listed, listed);
  return listed;
}

function listedTurn(state: FoldedRun, turn: Turn): Turn {
  const { committed, calls, resultsByCallId } = turn;
  const results = new Map(
    calls.filter(({ callId }) => resultsByCallId.has(callId)).map(({ callId }) => [callId, none]),
  );
  const listed = {
    ...turn,
    committed: { ...committed, items: [] },
    calls: calls.map((call) => (isFunctionToolCall(state, call) && !results.has(call.callId) ? call : named(call))),
    resultsByCallId: results,
  };
  listedTurns.set(listed, listed);
  return listed;
}

const none = create(ToolResultSchema);

function named({ callId, name }: FunctionCall): FunctionCall {
  return create(FunctionCallSchema, { callId, name });
}

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Limits } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { RunBounds, RunContext } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallToolRequest } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { CALLS_USED_UP, ruleOfBudget, ruleOfChoice, ruleOfCount } from "#runtime/rpc/run-bounds.ts";
import { blockedAsOffered, type Decision } from "../../tools/policy.ts";
import { resolve } from "../../tools/resolve.ts";
import { isResumable } from "../../tools/tool-set/executor.ts";
import type { ToolEntry, ToolSet } from "../../tools/tool-set/tool-set.ts";
import type { RunTally } from "./run-tally.ts";

/*
 * What a run leaves to its calls is held by the loop, and here once more: a loop that went astray, one that is thought dead, and
 * whatever calls tools on behalf of a call come by here all the same.
 *
 * run-bounds-1  A call says where it stands in its run and what is left (RunBounds), and is judged by that alone: nothing of it is lost
 *     with a router, and none needs to know what another one saw. It only narrows, so nobody gains by inventing it; and what the agent's
 *     configuration allows is the most, whatever the call says.
 * run-bounds-2  Besides, each router remembers for a while which calls of a run it let go on: more of them than max_tool_calls it refuses,
 *     whatever they say of themselves.
 * run-bounds-3  What may be under way already is no new spending: a call that is repeated after a crash may go on with a used-up budget,
 *     unless its beginning would have been recorded, and its end with it.
 */

type BoundCall = Pick<CallToolRequest, "callId" | "sessionId" | "runId" | "name" | "deadline"> & {
  readonly context: Pick<RunContext, "bounds" | "recovering">;
};

/** The tools of an agent, and what its runs may do at most. */
interface Allowance {
  tools: ToolSet;
  limits: Pick<Limits, "maxTurns" | "maxToolCalls"> | undefined;
}

/** Undefined for a call that its run has nothing against. */
export function decideByRun(agent: Allowance, entry: ToolEntry, request: BoundCall, now: number): Decision | undefined {
  const { tools } = agent;
  const { deadline } = request;
  const { bounds } = request.context;
  const isLate = deadline !== undefined && timestampMs(deadline) <= now;
  const rule = isLate ? "the time of its run is over (deadline)" : bounds && ruleOfRun(agent, entry, request, bounds);
  return rule === undefined ? undefined : blockedAsOffered(tools.agent, entry.reference, rule);
}

/** run-bounds-2; to be asked last, since the call counts from then on. */
export function decideByTally(
  tally: RunTally,
  { tools, limits }: Allowance,
  entry: ToolEntry,
  request: BoundCall,
): Decision | undefined {
  const { sessionId, runId, callId } = request;
  const { bounds } = request.context;
  const most = Math.min(...[bounds, limits].map((one) => one?.maxToolCalls ?? Number.POSITIVE_INFINITY));
  if (runId === "" || most === Number.POSITIVE_INFINITY) return undefined;
  const isCounted = tally.count(`${sessionId} ${runId}`, callId, most);
  return isCounted ? undefined : blockedAsOffered(tools.agent, entry.reference, CALLS_USED_UP);
}

/** LOOP-1, LOOP-2, LOOP-12 */
function ruleOfRun(
  { tools, limits }: Allowance,
  entry: ToolEntry,
  { context: { recovering } }: BoundCall,
  bounds: RunBounds,
): string | undefined {
  const isForced = (forcedTool: string) => {
    const forced = resolve(tools, forcedTool);
    return forced.kind === "found" && forced.entry === entry;
  };
  const { turn, call } = bounds;
  const agent = { turn, call, maxTurns: limits?.maxTurns, maxToolCalls: limits?.maxToolCalls };
  const rule = ruleOfChoice(bounds, isForced) ?? ruleOfCount(bounds) ?? ruleOfCount(agent);
  if (rule !== undefined) return rule;
  const mayHaveBegun = recovering && (isResumable(entry.executor) || entry.effect !== Effect.AT_MOST_ONCE); // run-bounds-3
  return mayHaveBegun ? undefined : ruleOfBudget(bounds);
}

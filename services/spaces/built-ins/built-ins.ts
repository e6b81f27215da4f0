import { create } from "@bufbuild/protobuf";
import { type ProvidedResult, ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure, refuse, refuseField } from "#runtime/failure/failure.ts";
import type { BuiltIn, BuiltInCall, Rooms } from "./built-in.ts";
import { memoryTools } from "./memory-tools.ts";
import { planTools } from "./plan-tools.ts";
import { resultTools } from "./result-tools.ts";
import { skip } from "./skip.ts";
import { spaceTools } from "./space-tools.ts";

const builtInsByName = new Map<string, BuiltIn>(
  [...spaceTools, ...memoryTools, ...planTools, ...resultTools, skip].map((builtIn) => [builtIn.tool.name, builtIn]),
);

export const builtInTools: readonly Tool[] = [...builtInsByName.values()].map((builtIn) => builtIn.tool);

/** Those that read or change what belongs to the session's agent. */
const keepers: ReadonlySet<BuiltIn> = new Set([...spaceTools, ...memoryTools, ...planTools, ...resultTools]);

/** What a passing fault or an own defect says is no answer of the tool: it leaves as the failure that it is. */
const faults = new Set<Failure["code"]>(["unavailable", "internal", "unknown", "canceled", "deadline_exceeded"]);

export async function callBuiltIn(
  rooms: Rooms,
  name: string,
  call: BuiltInCall,
  argumentsJson: string,
): Promise<ProvidedResult> {
  const builtIn =
    builtInsByName.get(name) ?? refuse("not_found", `no built-in tool "${name}"`, { reason: "TOOL_NOT_FOUND" });
  if (call.sessionId === "") refuseField("scope.session_id", "built-in tools belong to a session");
  if (call.agent === "") refuseField("scope.agent", "built-in tools belong to an agent");
  if (!call.isByOwner && keepers.has(builtIn)) return refusal(`session ${call.sessionId} belongs to another caller`);
  try {
    const value = await builtIn.run(rooms, call, argumentsJson);
    return create(ProvidedResultSchema, { outputJson: JSON.stringify(value), endsRun: builtIn.endsRun });
  } catch (error) {
    if (!(error instanceof Failure) || faults.has(error.code)) throw error;
    return refusal(error.message);
  }
}

function refusal(text: string): ProvidedResult {
  return create(ProvidedResultSchema, { outputJson: JSON.stringify({ error: text }), isError: true });
}

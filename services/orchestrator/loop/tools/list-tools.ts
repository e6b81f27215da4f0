import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import type { LoopContext } from "../context.ts";
import { AgentSwitched } from "../errors/agent-switched.ts";
import { waitFor } from "../errors/wait-for.ts";
import { runSourcesOf } from "./run-servers.ts";
import { createToolTable, type ToolTable } from "./tool-table.ts";

/** How long a run waits for sources that are starting, in all that one process works on it: npx may take longer to fetch a server. */
export const SOURCE_WAIT_MS = 60_000;

/**
 * The tools as they are now: they may change from turn to turn. A router that is away is waited for. Throws `AgentSwitched` when
 * the session has another agent by now.
 */
export async function listTools(
  state: FoldedRun,
  { router, clock }: Pick<LoopContext, "router" | "clock">,
  signal: AbortSignal,
  sourceWaitMs = SOURCE_WAIT_MS,
): Promise<ToolTable> {
  const { sessionId, agent, options, principal } = state.accepted;
  const patience = { clock, signal, endReason: RunEndReason.TOOLS_UNAVAILABLE, what: "the tools cannot be listed" };
  const runSources = runSourcesOf(options);
  const run = runSources.length > 0 ? { runId: state.runId, runSources } : {};
  const scope = { case: "session" as const, value: { sessionId, ...run } };
  const sourceWait = durationFromMs(sourceWaitMs);
  const listed = await waitFor(patience, () => router.listTools({ scope, sourceWait }, { signal, principal, agent }));
  if (listed.agent !== agent) throw new AgentSwitched(agent, listed.agent);
  return createToolTable(listed, options);
}

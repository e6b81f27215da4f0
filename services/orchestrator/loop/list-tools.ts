import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { createBackoff } from "#runtime/time/backoff.ts";
import type { RunState } from "../run/fold.ts";
import { AgentSwitched } from "./agent-switched.ts";
import type { LoopContext } from "./context.ts";
import { RunFailed } from "./run-failed.ts";
import { createToolTable, type ToolTable } from "./tool-table.ts";

const patienceMs = 60_000;

/**
 * The tools as they are now: they may change from turn to turn. A router that is away is waited for. Throws `AgentSwitched` when
 * the session has another agent by now.
 */
export async function listTools(state: RunState, context: LoopContext, signal: AbortSignal): Promise<ToolTable> {
  const { router, clock } = context;
  const { sessionId, agent, options, principal } = state.accepted;
  const backoff = createBackoff({ initialMs: 50, maxMs: 1_000 });
  const givesUpAtMs = clock.now() + patienceMs;
  for (;;) {
    try {
      const listed = await router.listTools({ sessionId }, { signal, principal, agent });
      if (listed.agent !== agent) throw new AgentSwitched(agent, listed.agent);
      return createToolTable(listed, options);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof AgentSwitched) throw error;
      const mayPass = error instanceof Failure && error.code === "unavailable" && clock.now() < givesUpAtMs;
      if (!mayPass)
        throw new RunFailed("tools_unavailable", `the tools cannot be listed: ${messageFromUnknown(error)}`, error);
      await clock.delay(backoff.next(), signal);
    }
  }
}

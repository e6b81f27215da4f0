import type { ListToolsRequest } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { refuseField } from "#runtime/failure/failure.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { isSwitching } from "../failures.ts";
import type { Sessions } from "../sessions.ts";
import type { AgentContext, Contexts } from "./contexts.ts";
import type { RunSources } from "./run-sources.ts";

export interface AskedContextParts {
  readonly contexts: Contexts;
  readonly sessions: Pick<Sessions, "active" | "settled">;
  readonly catalogue: Pick<Catalogue, "caughtUp">;
}

type Asked = Pick<ListToolsRequest, "scope"> & Partial<RunSources>;

/** Gives `use` the context that a request asks about: of a session, of an agent, or of the whole catalogue. */
export async function withAskedContext<T>(
  parts: AskedContextParts,
  { scope, ...run }: Asked,
  use: (context: AgentContext) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const { contexts, sessions, catalogue } = parts;
  if (scope.case !== "sessionId") {
    await catalogue.caughtUp();
    if (run.runSources?.length) refuseField("run_sources", "belong to a run, and a run to a session");
    return use(contexts.ofAgent(scope.value));
  }
  for (;;) {
    try {
      await catalogue.caughtUp();
      return await use(contexts.ofSession(await sessions.active(scope.value), run));
    } catch (error) {
      if (!isSwitching(error)) throw error;
    }
    await sessions.settled(scope.value, signal); // it is being switched: the next agent answers
  }
}

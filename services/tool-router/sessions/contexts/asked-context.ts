import type { ListToolsRequest } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { isSwitching } from "../failures.ts";
import type { Sessions } from "../sessions.ts";
import type { AgentContext } from "./agent-context.ts";
import type { Contexts } from "./contexts.ts";

export interface AskedContextParts {
  readonly contexts: Contexts;
  readonly sessions: Pick<Sessions, "active" | "settled">;
  readonly catalogue: Pick<Catalogue, "caughtUp">;
}

type Asked = Pick<ListToolsRequest, "scope">;

/** Gives `use` the context that a request asks about: of a session, of an agent, or of the whole catalogue. */
export async function withAskedContext<T>(
  parts: AskedContextParts,
  { scope }: Asked,
  use: (context: AgentContext) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const { contexts, sessions, catalogue } = parts;
  if (scope.case !== "session") {
    await catalogue.caughtUp();
    return use(contexts.ofAgent(scope.value));
  }
  const { sessionId, runId, runSources } = scope.value;
  const run = { runId, runSources, place: "session." };
  for (;;) {
    try {
      await catalogue.caughtUp();
      return await use(contexts.ofSession(await sessions.active(sessionId), run));
    } catch (error) {
      if (!isSwitching(error)) throw error;
    }
    await sessions.settled(sessionId, signal); // it is being switched: the next agent answers
  }
}

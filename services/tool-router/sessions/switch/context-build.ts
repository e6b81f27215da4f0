import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { unresolvedOf } from "../../tools/tool-set/unresolved.ts";
import type { Contexts } from "../contexts/contexts.ts";
import type { Sessions } from "../sessions.ts";

export interface ContextBuildParts {
  readonly contexts: Pick<Contexts, "ofSession" | "tools">;
  readonly sessions: Pick<Sessions, "activeFrom">;
  readonly catalogue: Pick<Catalogue, "caughtUp">;
}

/** Opens the context of a session's agent, waits until its sources have answered or taken too long, and says what it holds. */
export function createContextBuild({ contexts, sessions, catalogue }: ContextBuildParts, limitMs: number) {
  return async (session: Session): Promise<string> => {
    using limit = timeoutSignal(limitMs);
    await catalogue.caughtUp();
    const context = contexts.ofSession(sessions.activeFrom(session));
    const tools = await contexts.tools(context, limit);
    const failing = tools.sources
      .filter(({ available }) => !available)
      .map(({ source, reason }) => `${source}: ${reason}`);
    return [`${tools.byReference.size} tools`, ...failing, ...unresolvedOf(tools, context.agent)].join("; ");
  };
}

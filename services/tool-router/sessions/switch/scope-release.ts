import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { ScopeSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import type { FindProvider } from "../offers/provider-client.ts";

export interface ScopeReleaseParts {
  find: FindProvider;
  /** The providers that may keep something for an agent; undefined for one that was removed from the catalogue. */
  providersOf: (agent: Agent | undefined) => Iterable<string>;
  agent: (name: string) => Agent | undefined;
  logger: { warn(facts: object, message: string): void };
}

/** A provider that hangs holds up a switch no longer than this. */
const RELEASE_MS = 5_000;

/** Gives how much was closed. */
async function release(
  { find, logger }: Pick<ScopeReleaseParts, "find" | "logger">,
  provider: string,
  scope: MessageInitShape<typeof ScopeSchema>,
): Promise<number> {
  using limit = timeoutSignal(RELEASE_MS);
  try {
    return (await find(provider)?.releaseScope(create(ScopeSchema, scope), { signal: limit })) ?? 0;
  } catch (error) {
    const { code, reason } = error instanceof Failure ? error : { code: "unknown", reason: undefined };
    if (code === "unimplemented") return 0; // it keeps nothing by scope
    if (reason === "CALL_NOT_STARTED") return 0; // no provider runs that could keep something
    logger.warn({ ...scope, provider, err: error }, "a provider does not let go of a scope");
    throw error;
  }
}

/** Tells the providers that a session has left its agent. Returns in words what they closed. */
export function createScopeRelease({ find, providersOf, agent, logger }: ScopeReleaseParts) {
  const released = (provider: string, { id: sessionId, agent: name, principal }: Session) =>
    release({ find, logger }, provider, { sessionId, agent: name, principal });

  return async (session: Session): Promise<string> => {
    const providers = [...new Set(providersOf(agent(session.agent)))];
    const outcomes = await Promise.allSettled(providers.map((provider) => released(provider, session)));
    const words = outcomes.flatMap((outcome, index) => {
      if (outcome.status === "rejected") return [`${providers[index]}: ${messageFromUnknown(outcome.reason)}`];
      return outcome.value > 0 ? [`${providers[index]}: ${outcome.value} closed`] : [];
    });
    return words.join("; ") || "nothing was open";
  };
}

/** Ends the MCP servers of an agent that was removed, as far as no session alone has them: those end with it. */
export function releaseServers(parts: Pick<ScopeReleaseParts, "find" | "logger">, agent: string): void {
  release(parts, "mcp", { agent }).catch(() => {}); // it is logged, and they end when they are idle
}

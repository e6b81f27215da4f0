import type { Bus } from "#runtime/bus/bus.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { wakeSession } from "../../clients.ts";
import type { Contexts } from "../sessions/contexts/contexts.ts";
import { decideAsks } from "../sessions/offers/asks.ts";
import type { FindProvider } from "../sessions/offers/provider-client.ts";
import type { SessionChanges } from "../sessions/session-changes.ts";
import { createContextBuild } from "../sessions/switch/context-build.ts";
import { createSessionDrain } from "../sessions/switch/drain.ts";
import { createScopeRelease } from "../sessions/switch/scope-release.ts";
import type { SessionCalls } from "../sessions/switch/session-calls.ts";
import { Switching, type SwitchingParts } from "../sessions/switch/switching.ts";
import { openTakeover } from "../sessions/switch/takeover.ts";
import { openRouters } from "../subscriptions/sessions/routers.ts";
import { openSessionRuns } from "../subscriptions/sessions/runs.ts";
import { followSessions } from "../subscriptions/sessions/sessions.ts";

export interface SwitchingNeeds
  extends Omit<SwitchingParts, "routers" | "release" | "build" | "cancelRuns" | "wake" | "signal"> {
  contexts: Contexts;
  sessionCalls: SessionCalls;
  changes: SessionChanges;
  find: FindProvider;
  /** How long a context may take until its agent can be used without the sources that have not answered. */
  buildMs: number;
  telemetry: Pick<Telemetry, "clientTracing">;
  onFault: (fault: string) => void;
}

/** Switching, and this router's part in the switches of others. */
export async function openSwitching(stack: AsyncDisposableStack, bus: Bus, needs: SwitchingNeeds): Promise<Switching> {
  const { catalogue, contexts, sessionCalls, changes, find, clock, audit, logger, telemetry } = needs;
  const routers = stack.use(
    await openRouters(bus, needs.self, (session, revision) => drain.onAsked(session, revision)),
  );
  const { announceDrained } = routers;
  const drain = createSessionDrain({ calls: sessionCalls, contexts, clock, audit, logger, announceDrained });
  changes.subscribe((change) => drain.onChange(change));
  const runs = stack.use(openSessionRuns(bus, { telemetry, logger }));
  const release = createScopeRelease({
    find,
    logger,
    agent: (name) => catalogue.agent(name)?.agent,
    providersOf(agent) {
      const providers = catalogue.providers.map(({ name }) => name);
      const own = providers.filter((name) => catalogue.isOwnProvider(name));
      const options = { catalogue: catalogue.tools, providers, find, hasSession: true };
      return agent === undefined ? own : [...own, ...decideAsks(agent, options).map(({ provider }) => provider)];
    },
  });
  const stopping = new AbortController();
  const switching = new Switching({
    ...needs,
    routers,
    release,
    build: createContextBuild({ contexts, sessions: needs.sessions, catalogue }, needs.buildMs),
    cancelRuns: (session, reason) => runs.cancel(session, reason),
    wake: (sessionId) =>
      wakeSession(bus, { sessionId }).catch((err: unknown) => {
        logger.warn({ sessionId, err }, "what waits in the agent's inbox waits for the session's next run");
      }),
    signal: stopping.signal,
  });
  stack.defer(() => switching.idle());
  stack.use(openTakeover({ changes, switching, routers, clock }));
  stack.use(await followSessions(needs.sessions.bucket, changes, needs.onFault));
  stack.defer(() => stopping.abort());
  return switching;
}

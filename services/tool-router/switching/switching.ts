import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { type Session, SessionSchema, SessionState as State } from "#gen/toolbus/session/v1/session_pb.ts";
import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { Audit } from "../audit.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import type { Stored } from "../documents.ts";
import { refuseAgent, type Sessions } from "../sessions.ts";
import { AGENT_SWITCHED, isSettled, refuseClosed, refuseMissing, refuseSwitching, SESSION_CLOSED } from "./failures.ts";
import type { SessionNews } from "./session-news.ts";

/*
 * From one agent to the next (ORCH-1), and to the end:
 *
 *   ACTIVE ─▶ DRAINING ─▶ TEARING_DOWN ─▶ BUILDING ─▶ ACTIVE     a switch
 *     ▲          │              └───────────────────▶ CLOSED     a closing
 *     └──────────┘ the agent turned out unusable: nothing has been taken down
 *
 * S1  The state is the session's record. Each step is a compare-and-set from the state and the holder that it began with; what
 *     a step does besides may be done twice. So of two that want to switch one wins, and a holder that was frozen and
 *     replaced stops at its next step.
 * S2  The next agent is checked before the first step, and again before anything is taken down.
 * S3  DRAINING ends when every router that lives has left the old context (departures.ts); one that does not say so is waited
 *     for until two seconds after the time of the calls.
 * S4  With BUILDING the session's own revision grows beyond every revision that was ever told of its former agents: what was
 *     decided before is known by it, on every router.
 * S5  A session whose holder is gone is taken over by any router, which goes on with the step that it finds.
 */

export interface SwitchingParts {
  sessions: Sessions;
  news: SessionNews;
  catalogue: Catalogue;
  /** This router, among the routers. */
  self: string;
  fleet: { allLeft(sessionId: string, revision: number, limit: { ms: number; signal: AbortSignal }): Promise<boolean> };
  /** Closes what providers keep open for the scope of a session and agent; gives what was closed, in words. */
  release: (session: Session) => Promise<string>;
  /** Opens the context of the session's agent, and gives what it holds, in words. */
  build: (session: Session) => Promise<string>;
  /** Cancels the runs of a session that cannot go on: those of agents that it no longer has, or all. */
  cancelRuns: (session: Session, reason: string) => Promise<void>;
  clock: Clock;
  audit: Audit;
  logger: { warn(facts: object, message: string): void };
  /** Aborts when this router stops: what it has not finished goes on elsewhere. */
  signal: AbortSignal;
}

export interface Switching {
  switchAgent(request: { sessionId: string; agent: string; drainTimeoutMs?: number | undefined }): Promise<Session>;
  close(request: { sessionId: string; drainTimeoutMs?: number | undefined }): Promise<Session>;
  /** S5. Does nothing if it has been done. */
  adopt(standing: Stored<Session>): Promise<void>;
  /** Resolves when this router takes no session through a switch. */
  idle(): Promise<void>;
}

const DRAIN_MS = 5_000;
const LEAVING_GRACE_MS = 2_000;

export function createSwitching(parts: SwitchingParts): Switching {
  const { sessions, news, catalogue, self, fleet, clock, audit, logger, signal } = parts;
  const { documents } = sessions;
  const driving = new Map<string, Promise<Session | undefined>>();

  async function switchAgent({ sessionId, agent, drainTimeoutMs }: Parameters<Switching["switchAgent"]>[0]) {
    await catalogue.caughtUp();
    const faults = faultsOf(agent);
    if (faults !== undefined) refuseFaulty(agent, faults);
    const { session, ending } = await begin(sessionId, { nextAgent: agent, drainTimeoutMs });
    if (ending === undefined) {
      if (session.state === State.CLOSED) refuseClosed(sessionId);
      if (session.state !== State.ACTIVE) refuseSwitching(session);
      return sessions.told(session); // it has that agent
    }
    const ended = await ending;
    if (ended.state === State.CLOSED) refuseClosed(sessionId);
    if (ended.agent !== agent) refuseFaulty(agent, faultsOf(agent) ?? ["it was taken away for a while"]);
    return sessions.told(ended);
  }

  async function close({ sessionId, drainTimeoutMs }: Parameters<Switching["close"]>[0]) {
    for (;;) {
      const { session, ending } = await begin(sessionId, { nextAgent: "", drainTimeoutMs });
      if (session.state === State.CLOSED) return sessions.told(session);
      const ended = await (ending ?? settled(sessionId)); // of the closing, or of what was under way before it
      if (ended.state === State.CLOSED) return sessions.told(ended);
    }
  }

  /** Without an ending when the session has that agent, is on its way, or closed. */
  async function begin(
    id: string,
    { nextAgent, drainTimeoutMs = DRAIN_MS }: { nextAgent: string; drainTimeoutMs?: number | undefined },
  ): Promise<{ session: Session; ending?: Promise<Session> }> {
    const drainUntil = timestampFromMs(clock.now() + drainTimeoutMs);
    const { value, hasChanged, revision } = await documents.update(id, (session) =>
      session?.state === State.ACTIVE && session.agent !== nextAgent
        ? { ...session, state: State.DRAINING, nextAgent, drainUntil, holder: self }
        : undefined,
    );
    const session = value ?? refuseMissing(id);
    if (!hasChanged) return { session };
    const own = drive({ key: id, value: session, revision }).then((ended) => ended ?? settled(id));
    return { session, ending: Promise.race([own, settled(id)]) }; // this router may be taken for gone, and hang
  }

  /** How a session stands as soon as nobody takes it anywhere. */
  function settled(id: string): Promise<Session> {
    const read = async () => {
      const session = (await documents.read(id))?.value ?? refuseMissing(id);
      return isSettled(session) ? session : undefined;
    };
    return news.until(id, read, NEVER);
  }

  /** The session at its end; undefined when somebody else goes on with it. */
  function drive(standing: Stored<Session>): Promise<Session | undefined> {
    const { key: sessionId } = standing;
    const driven = (driving.get(sessionId) ?? Promise.resolve())
      .then(() => steps(standing))
      .catch((err: unknown) => {
        logger.warn({ sessionId, err }, "a switch stands still, and is taken up again");
        return undefined;
      })
      .finally(() => {
        if (driving.get(sessionId) === driven) driving.delete(sessionId);
      });
    driving.set(sessionId, driven);
    return driven;
  }

  async function steps(standing: Stored<Session>): Promise<Session | undefined> {
    let next: Stored<Session> | undefined = standing;
    while (next !== undefined && !isSettled(next.value) && !signal.aborted) next = await step(next);
    return next !== undefined && isSettled(next.value) ? next.value : undefined;
  }

  /** What stands after the step; undefined when somebody else goes on. */
  async function step({ value: session, revision }: Stored<Session>): Promise<Stored<Session> | undefined> {
    switch (session.state) {
      case State.DRAINING:
        return drained(session, revision);
      case State.TEARING_DOWN:
        return tornDown(session);
      default:
        return built(session);
    }
  }

  async function drained(session: Session, revision: number): Promise<Stored<Session> | undefined> {
    const { id, nextAgent, drainUntil } = session;
    const leftMs = (drainUntil === undefined ? 0 : timestampMs(drainUntil) - clock.now()) + LEAVING_GRACE_MS; // S3
    if (!(await fleet.allLeft(id, revision, { ms: Math.max(LEAVING_GRACE_MS, leftMs), signal }))) {
      if (signal.aborted) return undefined;
      logger.warn({ sessionId: id }, "not every router has left the session: the switch goes on without it");
    }
    await catalogue.caughtUp();
    const faults = nextAgent === "" ? undefined : faultsOf(nextAgent); // S2
    if (faults === undefined) return advance(session, { state: State.TEARING_DOWN });
    const message = `the switch to agent ${JSON.stringify(nextAgent)} is taken back: ${faults.join("; ")}`;
    logger.warn({ sessionId: id }, message);
    audit({ kind: AuditKind.BLOCKED, agent: nextAgent, sessionId: id, rule: "agent cannot be loaded", message });
    return advance(session, { state: State.ACTIVE, ...SETTLED });
  }

  async function tornDown(session: Session): Promise<Stored<Session> | undefined> {
    const { id: sessionId, agent, nextAgent } = session;
    const message = await parts.release(session);
    audit({ kind: AuditKind.TORN_DOWN, agent, sessionId, message });
    if (nextAgent !== "") {
      await catalogue.caughtUp();
      const agentRevision = session.agentRevision + catalogue.lastAgentRevision + 1; // S4
      return advance(session, { state: State.BUILDING, agent: nextAgent, agentRevision });
    }
    await parts.cancelRuns(session, SESSION_CLOSED.toLowerCase());
    return advance(session, { state: State.CLOSED, ...SETTLED });
  }

  async function built(session: Session): Promise<Stored<Session> | undefined> {
    const { id: sessionId, agent } = session;
    const [message] = await Promise.all([
      parts.build(session).catch((error: unknown) => `not usable yet: ${messageFromUnknown(error)}`),
      parts.cancelRuns(session, AGENT_SWITCHED.toLowerCase()),
    ]);
    audit({ kind: AuditKind.BUILT, agent, sessionId, message });
    const next = await advance(session, { state: State.ACTIVE, ...SETTLED });
    if (next) audit({ kind: AuditKind.SWITCHED, agent, sessionId, message: `session ${sessionId} has agent ${agent}` });
    return next;
  }

  /** S1 */
  async function advance(from: Session, to: Partial<Session>): Promise<Stored<Session> | undefined> {
    const { value, hasChanged, revision } = await documents.update(from.id, (standing) =>
      standing?.state === from.state && standing.holder === from.holder ? changed(standing, to) : undefined,
    );
    return hasChanged && value ? { key: from.id, value, revision } : undefined;
  }

  /** Why the agent cannot be used; undefined when it can. */
  function faultsOf(name: string): string[] | undefined {
    const found = catalogue.agent(name);
    if (found === undefined) return [`there is no agent ${JSON.stringify(name)}`];
    const { faults } = catalogue.findings(found.agent);
    return faults.length > 0 ? faults : undefined;
  }

  function refuseFaulty(name: string, faults: string[]): never {
    if (catalogue.agent(name) === undefined) refuseAgent(name);
    const message = `agent ${JSON.stringify(name)} cannot be loaded: ${faults.join("; ")}`;
    return refuse("failed_precondition", message, { reason: "AGENT_FAULTY", metadata: { agent: name } });
  }

  return {
    switchAgent,
    close,
    async adopt({ key, value }) {
      if (isSettled(value) || driving.has(key)) return;
      const taken = value.holder === self ? await documents.read(key) : await advanceHolder(value);
      if (taken !== undefined && taken.value.holder === self) await drive(taken);
    },
    idle: async () => void (await Promise.all(driving.values())),
  };

  async function advanceHolder(from: Session): Promise<Stored<Session> | undefined> {
    const taken = await advance(from, { holder: self });
    if (taken)
      logger.warn({ sessionId: from.id, from: from.holder }, "a switch is taken over from a router that is gone");
    return taken;
  }
}

const NEVER = new AbortController().signal;

const SETTLED = { nextAgent: "", holder: "" };

function changed(session: Session, to: Partial<Session>): Session {
  const { drainUntil, ...rest } = { ...session, ...to };
  const isDraining = rest.state === State.DRAINING && drainUntil !== undefined;
  return create(SessionSchema, { ...rest, ...(isDraining && { drainUntil }) });
}

import { timestampMs } from "@bufbuild/protobuf/wkt";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { Carry, type Session, SessionState as State } from "#gen/toolbus/session/v1/session_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import type { Bucket, Stored } from "#runtime/bus/buckets/bucket.ts";
import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { type Catalogue, refuseMissing } from "../../catalogue/catalogue.ts";
import { AGENT_SWITCHED, SESSION_CLOSED } from "../failures.ts";
import type { SessionRecord } from "../session-record.ts";
import type { LeaveSpace } from "../spaces.ts";

/*
 * From one agent to the next (ORCH-1), and to the end:
 *
 *   ACTIVE ─▶ DRAINING ─▶ TEARING_DOWN ─▶ BUILDING ─▶ ACTIVE     a switch
 *     ▲          │              └───────────────────▶ CLOSED     a closing
 *     └──────────┘ the agent turned out unusable: nothing has been taken down
 *
 * Who calls meanwhile: a call that names the context revision by which an agent decided it is refused at once (AGENT_SWITCHED),
 * because it never becomes right again. A caller bound to no agent (a person, ListTools, ExplainTool) waits for the next agent. A
 * call of the former agent that waits for a person or a watcher stays with that agent: its late result goes to that agent's
 * inbox, and the submitter is told `resolved_late`.
 *
 * switch-1  The state is the session's record. Each step is a compare-and-set from the state and the holder with which it began; its
 *     other effects may happen twice. So one of two concurrent switches wins, and a holder that was frozen and replaced stops
 *     at its next step.
 * switch-2  The next agent is checked before the first step, and again before anything is taken down.
 * switch-3  DRAINING ends when every live router has drained the session (drain.ts). A router that does not say so is waited for until
 *     two seconds after the drain timeout.
 * switch-4  With BUILDING the session's stored revision grows beyond every revision of its former agents. So every router knows by the
 *     revision what a former agent decided.
 * switch-5  Any router takes over a session whose holder has died, and continues with the step that it finds.
 * switch-6  A switch that expects a revision begins only from the agent that had it. So a switch that is repeated because its answer was
 *     lost is made once, and a request that arrives late does nothing.
 */

export interface StepParts {
  bucket: Bucket<SessionRecord>;
  catalogue: Catalogue;
  routers: {
    allDrained(sessionId: string, revision: number, limit: { ms: number; signal: AbortSignal }): Promise<boolean>;
  };
  /** Closes what providers keep open for the scope of a session and agent; gives what was closed, in words. */
  release: (session: Session) => Promise<string>;
  /** Opens the context of the session's agent, and gives what it holds, in words. */
  build: (session: Session) => Promise<string>;
  /** Cancels the runs of a session that cannot go on: those of agents that it no longer has, or all. */
  cancelRuns: (session: Session, reason: string) => Promise<void>;
  leaveSpace: LeaveSpace;
  /** Lets the session's agent read what came to its inbox while the session had another one. */
  wake: (sessionId: string) => Promise<void>;
  clock: Clock;
  audit: Audit;
  logger: { warn(facts: object, message: string): void };
  /** Aborts when this router stops: what it has not finished goes on elsewhere. */
  signal: AbortSignal;
}

const DRAIN_GRACE_MS = 2_000;

const SETTLED = { nextAgent: "", nextCarry: Carry.UNSPECIFIED, holder: "" };

/** What is done in each state of a session that is on its way. */
export class SwitchSteps {
  readonly #parts: StepParts;

  constructor(parts: StepParts) {
    this.#parts = parts;
  }

  /** The session after the step; undefined when another router goes on. */
  async take({ value: session, revision }: Stored<SessionRecord>): Promise<Stored<SessionRecord> | undefined> {
    switch (session.state) {
      case State.DRAINING:
        return this.#drain(session, revision);
      case State.TEARING_DOWN:
        return this.#tearDown(session);
      default:
        return this.#build(session);
    }
  }

  /** switch-1 */
  async advance(from: SessionRecord, to: Partial<SessionRecord>): Promise<Stored<SessionRecord> | undefined> {
    const { value, hasChanged, revision } = await this.#parts.bucket.update(from.id, (standing) =>
      standing?.state === from.state && standing.holder === from.holder ? changed(standing, to) : undefined,
    );
    return hasChanged && value ? { key: from.id, value, revision } : undefined;
  }

  /** Why an agent cannot be used; undefined when it can. */
  faultsOf(name: string): string[] | undefined {
    const found = this.#parts.catalogue.agent(name);
    if (found === undefined) return [`there is no agent ${JSON.stringify(name)}`];
    const { faults } = this.#parts.catalogue.findings(found.agent);
    return faults.length > 0 ? faults : undefined;
  }

  refuseFaulty(name: string, faults: string[]): never {
    if (this.#parts.catalogue.agent(name) === undefined) refuseMissing("agent", name);
    const message = `agent ${JSON.stringify(name)} cannot be loaded: ${faults.join("; ")}`;
    return refuse("failed_precondition", message, { reason: "AGENT_INVALID", metadata: { agent: name } });
  }

  async #drain(session: SessionRecord, revision: number): Promise<Stored<SessionRecord> | undefined> {
    const { routers, clock, catalogue, logger, signal } = this.#parts;
    const { id: sessionId, nextAgent, drainExpireTime: drainUntil } = session;
    const leftMs = (drainUntil === undefined ? 0 : timestampMs(drainUntil) - clock.now()) + DRAIN_GRACE_MS; // switch-3
    if (!(await routers.allDrained(sessionId, revision, { ms: Math.max(DRAIN_GRACE_MS, leftMs), signal }))) {
      if (signal.aborted) return undefined;
      logger.warn({ sessionId }, "not every router has left the session: the switch goes on without it");
    }
    await catalogue.caughtUp();
    const faults = nextAgent === "" ? undefined : this.faultsOf(nextAgent); // switch-2
    return faults === undefined ? this.advance(session, { state: State.TEARING_DOWN }) : this.#revert(session, faults);
  }

  #revert(session: SessionRecord, faults: string[]): Promise<Stored<SessionRecord> | undefined> {
    const { audit, logger } = this.#parts;
    const { id: sessionId, nextAgent } = session;
    const message = `the switch to agent ${JSON.stringify(nextAgent)} is taken back: ${faults.join("; ")}`;
    logger.warn({ sessionId }, message);
    const rule = "agent cannot be loaded";
    audit({ kind: AuditKind.BLOCKED, agent: nextAgent, sessionId, rule, message }, session.principal);
    return this.advance(session, { state: State.ACTIVE, ...SETTLED });
  }

  async #tearDown(session: SessionRecord): Promise<Stored<SessionRecord> | undefined> {
    const { release, audit, catalogue, cancelRuns, leaveSpace, logger } = this.#parts;
    const { id: sessionId, agent, nextAgent, nextCarry: carry } = session;
    const message = await release(session);
    audit({ kind: AuditKind.TORN_DOWN, agent, sessionId, message }, session.principal);
    if (nextAgent !== "") {
      await catalogue.caughtUp();
      const contextRevision = session.contextRevision + catalogue.lastAgentRevision + 1; // switch-4
      const switchCount = session.switchCount + 1;
      return this.advance(session, { state: State.BUILDING, agent: nextAgent, contextRevision, switchCount, carry });
    }
    await cancelRuns(session, SESSION_CLOSED.toLowerCase());
    await leaveSpace(sessionId, agent).catch((err: unknown) => {
      logger.warn({ sessionId, err }, "the session's agent stays in its space until the session is forgotten");
    });
    return this.advance(session, { state: State.CLOSED, ...SETTLED });
  }

  async #build(session: SessionRecord): Promise<Stored<SessionRecord> | undefined> {
    const { build, cancelRuns, wake, audit } = this.#parts;
    const { id: sessionId, agent, principal } = session;
    const [message] = await Promise.all([
      build(session).catch((error: unknown) => `not usable yet: ${messageFromUnknown(error)}`),
      cancelRuns(session, AGENT_SWITCHED.toLowerCase()),
    ]);
    audit({ kind: AuditKind.BUILT, agent, sessionId, message }, principal);
    await wake(sessionId);
    const next = await this.advance(session, { state: State.ACTIVE, ...SETTLED });
    const switched = `session ${sessionId} has agent ${agent}`;
    if (next) audit({ kind: AuditKind.SWITCHED, agent, sessionId, message: switched }, principal);
    return next;
  }
}

function changed(session: SessionRecord, to: Partial<SessionRecord>): SessionRecord {
  const { drainExpireTime: drainUntil, ...rest } = { ...session, ...to };
  const isDraining = rest.state === State.DRAINING && drainUntil !== undefined;
  return { ...rest, ...(isDraining && { drainExpireTime: drainUntil }) }; // no `create`: it would leave out what it does not know
}

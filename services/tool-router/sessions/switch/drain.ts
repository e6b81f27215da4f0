import { timestampMs } from "@bufbuild/protobuf/wkt";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { type Session, SessionState as State } from "#gen/toolbus/session/v1/session_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import type { Stored } from "#runtime/bus/buckets/bucket.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import type { Contexts } from "../contexts/contexts.ts";
import { canceledBySwitch, isSettled } from "../failures.ts";
import type { SessionCalls } from "./session-calls.ts";

export interface SessionDrainParts {
  calls: SessionCalls;
  contexts: Pick<Contexts, "closeContext" | "reopenContext">;
  clock: Clock;
  audit: Audit;
  logger: { warn(facts: object, message: string): void };
  /** Tells the other routers that this one has drained the session, which drains since that revision. */
  announceDrained: (sessionId: string, revision: number) => void;
}

/** A session that drains, or has drained here. */
interface Draining {
  /** As it was when it began to. */
  readonly session: Session;
  readonly revision: number;
  /** The calls that were under way then. */
  readonly callIds: readonly string[];
  isDrained: boolean;
}

/** How long calls that were canceled may take to end. */
const ENDING_MS = 1_000;

/**
 * Drains sessions that are being switched: the calls in flight here may end until their time is over, then they are canceled, and
 * the session's context is closed. The router says again that it has drained a session whenever it is asked.
 */
export function createSessionDrain({ calls, contexts, clock, audit, logger, announceDrained }: SessionDrainParts) {
  const drainingById = new Map<string, Draining>();

  async function drain(session: Session, revision: number): Promise<void> {
    const draining = { session, revision, callIds: calls.callIds(session.id), isDrained: false };
    drainingById.set(session.id, draining);
    const isOver = () => drainingById.get(session.id) !== draining; // the session has moved on
    const untilMs = session.drainExpireTime ? timestampMs(session.drainExpireTime) : 0;
    if (!(await emptiedWithin(session.id, untilMs - clock.now()))) {
      if (isOver()) return;
      cancel(session, calls.callIds(session.id));
      if (!(await emptiedWithin(session.id, ENDING_MS))) {
        const callIds = calls.callIds(session.id);
        logger.warn({ sessionId: session.id, callIds }, "canceled calls do not end: they are left behind");
      }
    }
    if (isOver()) return;
    contexts.closeContext(session);
    draining.isDrained = true;
    announceDrained(session.id, revision);
  }

  /** This router was disconnected so long that the others went on without it. */
  function abandon({ session, callIds }: Draining): void {
    const left = calls.callIds(session.id).filter((callId) => callIds.includes(callId));
    if (left.length > 0) cancel(session, left);
    contexts.closeContext(session);
  }

  async function emptiedWithin(sessionId: string, ms: number): Promise<boolean> {
    return calls.callIds(sessionId).length === 0 || comesWithin(Math.max(0, ms), calls.emptied(sessionId), clock);
  }

  function cancel(session: Session, callIds: readonly string[]): void {
    const { id: sessionId, agent, nextAgent, principal } = session;
    logger.warn({ sessionId, agent, nextAgent, callIds }, "a switch waits no longer: calls in flight are canceled");
    const reason = canceledBySwitch(session);
    for (const callId of callIds)
      audit({ kind: AuditKind.SWITCH_TIMED_OUT, agent, sessionId, callId, message: reason.message }, principal);
    calls.cancel(sessionId, callIds, reason);
  }

  return {
    onChange({ key: sessionId, value: session, revision }: Stored<Session>): void {
      if (session.state === State.DRAINING) void drain(session, revision);
      if (!isSettled(session)) return;
      const draining = drainingById.get(sessionId);
      if (draining && !draining.isDrained && hasMovedOn(draining.session, session)) abandon(draining);
      drainingById.delete(sessionId);
      contexts.reopenContext(sessionId);
    },
    /** Another router asks whether this one has drained the session. */
    onAsked(sessionId: string, revision: number): void {
      const draining = drainingById.get(sessionId);
      if (draining?.isDrained && draining.revision >= revision) announceDrained(sessionId, draining.revision);
    },
  };
}

/** Whether the session came to another agent or its end, and was not taken back. */
function hasMovedOn(before: Session, after: Session): boolean {
  return after.state === State.CLOSED || after.contextRevision !== before.contextRevision;
}

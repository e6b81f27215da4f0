import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Carry, type Session, SessionState as State } from "#gen/toolbus/session/v1/session_pb.ts";
import type { Stored } from "#runtime/bus/buckets/bucket.ts";
import { refuseMissingSession } from "#runtime/failure/session-owner.ts";
import { isSettled, refuseClosed, refuseOutdated, refuseSwitching } from "../failures.ts";
import type { SessionRecord } from "../session-record.ts";
import type { Sessions } from "../sessions.ts";
import { type StepParts, SwitchSteps } from "./steps.ts";

export interface SwitchingParts extends Omit<StepParts, "bucket"> {
  sessions: Sessions;
  /** This router, unlike every other one and every former one. */
  self: string;
  /** How long calls in flight may take unless the request says otherwise. */
  drainMs: number;
}

export interface SwitchRequest {
  sessionId: string;
  agent: string;
  drainTimeoutMs?: number | undefined;
  /** The context revision to switch from; absent or 0: from any. */
  expectedContextRevision?: number | undefined;
  /** By default, what users and agents said. */
  carry?: Carry;
}

const NEVER = new AbortController().signal;

/** Switches and closes sessions. The steps and their invariants are in steps.ts. */
export class Switching {
  readonly #parts: SwitchingParts;
  readonly #steps: SwitchSteps;
  readonly #driving = new Map<string, Promise<Session | undefined>>();

  constructor(parts: SwitchingParts) {
    this.#parts = parts;
    this.#steps = new SwitchSteps({ ...parts, bucket: parts.sessions.bucket });
  }

  /** A switch does not begin for a caller that has disconnected. One that has begun goes on without its caller. */
  async switchAgent(request: SwitchRequest, signal?: AbortSignal): Promise<Session> {
    const { sessionId, agent } = request;
    const { sessions, catalogue } = this.#parts;
    await catalogue.caughtUp();
    signal?.throwIfAborted();
    const faults = this.#steps.faultsOf(agent); // switch-2
    if (faults !== undefined) this.#steps.refuseFaulty(agent, faults);
    const { session, ending } = await this.#begin(request);
    const ended = await (ending ?? this.#endingOfOther(session, request));
    if (ended.state === State.CLOSED) refuseClosed(sessionId);
    if (ended.agent === agent) return sessions.withAgentRevision(ended);
    this.#requireExpected(ended, request);
    return this.#steps.refuseFaulty(agent, this.#steps.faultsOf(agent) ?? ["it was taken away for a while"]);
  }

  async close({ sessionId, drainTimeoutMs }: Omit<SwitchRequest, "agent" | "carry">): Promise<Session> {
    for (;;) {
      const { session, ending } = await this.#begin({ sessionId, agent: "", drainTimeoutMs });
      if (session.state === State.CLOSED) return this.#parts.sessions.withAgentRevision(session);
      const ended = await (ending ?? this.#settled(sessionId)); // of the closing, or of what was under way before it
      if (ended.state === State.CLOSED) return this.#parts.sessions.withAgentRevision(ended);
    }
  }

  /** switch-5. Does nothing if it has been done. */
  async takeOver({ key, value }: Stored<SessionRecord>): Promise<void> {
    const { self, sessions, logger } = this.#parts;
    if (isSettled(value) || this.#driving.has(key)) return;
    const isOwn = value.holder === self;
    const taken = await (isOwn ? sessions.bucket.read(key) : this.#steps.advance(value, { holder: self }));
    if (taken === undefined || taken.value.holder !== self) return;
    if (!isOwn)
      logger.warn({ sessionId: key, from: value.holder }, "a switch is taken over from a router that is gone");
    await this.#drive(taken);
  }

  /** Resolves when this router switches no session. */
  async idle(): Promise<void> {
    await Promise.all(this.#driving.values());
  }

  /** The end of a switch that was not begun here; a repeated one ends with the one that it repeats. */
  async #endingOfOther(
    session: Session,
    { sessionId, agent, expectedContextRevision = 0 }: SwitchRequest,
  ): Promise<Session> {
    if (session.state === State.CLOSED) refuseClosed(sessionId);
    if (session.state === State.ACTIVE) {
      if (session.agent !== agent) this.#requireExpected(session, { expectedContextRevision });
      return session;
    }
    const isRepeated = expectedContextRevision !== 0 && session.nextAgent === agent;
    return isRepeated ? this.#settled(sessionId) : refuseSwitching(session);
  }

  /** switch-6 */
  #isLeftBy(session: Session, { agent, expectedContextRevision = 0 }: SwitchRequest): boolean {
    return (
      session.state === State.ACTIVE && session.agent !== agent && this.#isExpected(session, expectedContextRevision)
    );
  }

  #isExpected(session: Session, contextRevision: number): boolean {
    return contextRevision === 0 || this.#parts.sessions.isOfStanding(session, contextRevision);
  }

  #requireExpected(session: Session, { expectedContextRevision: expected = 0 }: Partial<SwitchRequest>): void {
    if (!this.#isExpected(session, expected)) refuseOutdated(this.#parts.sessions.withAgentRevision(session), expected);
  }

  /** An empty agent closes. Has no `ending` when the session has that agent, is being switched, is closed, or is not as expected. */
  async #begin(request: SwitchRequest): Promise<{ session: Session; ending?: Promise<Session> }> {
    const { sessionId: id, agent: nextAgent, drainTimeoutMs = this.#parts.drainMs } = request;
    const { sessions, clock, self: holder } = this.#parts;
    const drainUntil = timestampFromMs(clock.now() + drainTimeoutMs);
    const nextCarry = nextAgent === "" ? Carry.UNSPECIFIED : request.carry || Carry.MESSAGES;
    const { value, hasChanged, revision } = await sessions.bucket.update(id, (session) =>
      session !== undefined && this.#isLeftBy(session, request)
        ? { ...session, state: State.DRAINING, nextAgent, nextCarry, drainExpireTime: drainUntil, holder }
        : undefined,
    );
    const session = value ?? refuseMissingSession(id);
    if (!hasChanged) return { session };
    const own = this.#drive({ key: id, value: session, revision }).then((ended) => ended ?? this.#settled(id));
    return { session, ending: Promise.race([own, this.#settled(id)]) }; // another router may take this one for dead and finish
  }

  #settled(id: string): Promise<Session> {
    return this.#parts.sessions.settled(id, NEVER);
  }

  /** The session at the end of the switch; undefined when another router goes on with it. */
  #drive(standing: Stored<SessionRecord>): Promise<Session | undefined> {
    const { key: sessionId } = standing;
    const driven = (this.#driving.get(sessionId) ?? Promise.resolve())
      .then(() => this.#takeSteps(standing))
      .catch((err: unknown) => {
        this.#parts.logger.warn({ sessionId, err }, "a switch stands still, and is taken up again");
        return undefined;
      })
      .finally(() => {
        if (this.#driving.get(sessionId) === driven) this.#driving.delete(sessionId);
      });
    this.#driving.set(sessionId, driven);
    return driven;
  }

  async #takeSteps(standing: Stored<SessionRecord>): Promise<Session | undefined> {
    let next: Stored<SessionRecord> | undefined = standing;
    while (next !== undefined && !isSettled(next.value) && !this.#parts.signal.aborted)
      next = await this.#steps.take(next);
    return next !== undefined && isSettled(next.value) ? next.value : undefined;
  }
}

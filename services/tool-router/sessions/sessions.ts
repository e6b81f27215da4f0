import { randomUUID } from "node:crypto";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Session, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import type { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import type { BucketIndex } from "#runtime/bus/buckets/reading/bucket-index.ts";
import type { Quota } from "#runtime/bus/quota/quota.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { isOwner, refuseMissingSession } from "#runtime/failure/session-owner.ts";
import { type Caller, principalOf } from "#runtime/rpc/identity.ts";
import { firstKeys } from "#runtime/rpc/paging/first-keys.ts";
import { type PageRequest, pageOf, sizeOfPage } from "#runtime/rpc/paging/page.ts";
import { placeFromToken } from "#runtime/rpc/paging/page-token.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { type Catalogue, refuseMissing } from "../catalogue/catalogue.ts";
import { isSettled, refuseClosed, refuseSwitched, refuseSwitching } from "./failures.ts";
import type { RecentSessions } from "./recent-sessions.ts";
import type { SessionChanges } from "./session-changes.ts";
import { type SessionRecord, sessionRecord } from "./session-record.ts";

export interface SessionParts {
  bucket: Bucket<SessionRecord>;
  /** Whose they are. */
  principals: Pick<BucketIndex<string>, "read">;
  catalogue: Catalogue;
  clock: Clock;
  changes: SessionChanges;
  /** Who is over its quota of what all sessions take. */
  quota?: Pick<Quota, "requireRoomUnless">;
  /** Without it, each call reads its session. */
  recent?: Pick<RecentSessions, "active">;
}

/** A session whose agent can be used. */
export interface ActiveSession {
  readonly session: Session;
  /** The stored revision: every context revision of a former agent is at most this. */
  readonly since: number;
}

/** What a session takes, roughly. */
const SESSION_BYTES = 512;

/**
 * The stored sessions. The stored `context_revision` grows with each switch. Clients see the sum of it and the revision of the
 * agent's configuration, which grows with each reload; it is the same on every router.
 */
export class Sessions {
  readonly #parts: SessionParts;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  get bucket(): Bucket<SessionRecord> {
    return this.#parts.bucket;
  }

  /** An id that is taken by the same principal for the same agent is that session. */
  async open(request: { agent: string; sessionId: string; caller: Caller }): Promise<Session> {
    const { bucket, catalogue, clock, quota } = this.#parts;
    const { agent, caller } = request;
    await catalogue.requireAgent(agent, caller);
    if (catalogue.agent(agent) === undefined) refuseMissing("agent", agent);
    const principal = principalOf(caller);
    const id = request.sessionId || randomUUID();
    const createdAt = timestampFromMs(clock.now());
    const session = sessionRecord({ id, agent, principal, createTime: createdAt, state: SessionState.ACTIVE });
    await quota?.requireRoomUnless(principal, SESSION_BYTES, async () => (await bucket.read(id)) !== undefined);
    if ((await bucket.create(id, session)) !== undefined) return this.withAgentRevision(session);
    const standing = await this.#stored(id);
    const isSame = standing.agent === agent && standing.principal === principal;
    if (isSame && standing.state === SessionState.ACTIVE) return this.withAgentRevision(standing);
    return refuse("already_exists", `there is another session ${id}`, {
      reason: "SESSION_ALREADY_EXISTS",
      metadata: { session_id: id },
    });
  }

  async get(id: string): Promise<Session> {
    return this.withAgentRevision(await this.#stored(id));
  }

  /** What its client wants to be told of the logs of tools. */
  async setLogLevel(id: string, logLevel: LogLevel): Promise<Session> {
    const { value = refuseMissingSession(id) } = await this.#parts.bucket.update(id, (standing) => {
      if (standing?.state === SessionState.CLOSED) refuseClosed(id);
      return standing && standing.logLevel !== logLevel ? { ...standing, logLevel } : undefined;
    });
    return this.withAgentRevision(value);
  }

  /**
   * The session, if its agent is the one that decided at that revision; 0 stands for a caller who is bound to no agent. Refuses
   * what another agent decided. While the session is being switched, refuses with SESSION_SWITCHING (see `settled`).
   */
  async active(id: string, revision = 0): Promise<ActiveSession> {
    const { catalogue } = this.#parts;
    const active = await this.#active(id, revision);
    const { session } = active;
    if (session.contextRevision >= revision && catalogue.agent(session.agent)) return active;
    await catalogue.caughtUp();
    const again = await this.#active(id, revision);
    const { contextRevision: standing } = again.session;
    if (standing >= revision) return again;
    const message = `the agent's context has revision ${standing}, the call was decided by ${revision}`;
    return refuse("aborted", message, { reason: "CONTEXT_REVISION_AHEAD" });
  }

  async #active(id: string, revision: number): Promise<ActiveSession> {
    const recent = this.#parts.recent?.active(id);
    const isKnown = recent && (revision === 0 || this.#isDecidedBy(recent, revision));
    if (isKnown) return this.activeFrom(recent);
    const session = await this.#stored(id);
    if (session.state === SessionState.CLOSED) refuseClosed(id);
    if (revision !== 0 && (!isSettled(session) || revision <= session.contextRevision)) refuseSwitched(session);
    if (!isSettled(session)) refuseSwitching(session);
    return this.activeFrom(session);
  }

  /** Whether its agent decided at that revision, as far as the catalogue is known here. */
  #isDecidedBy(session: Session, revision: number): boolean {
    return revision > session.contextRevision && revision <= this.withAgentRevision(session).contextRevision;
  }

  /** For a session that was read, and may be used. */
  activeFrom(session: Session): ActiveSession {
    return { session: this.withAgentRevision(session), since: session.contextRevision };
  }

  /** Whether a client saw the revision with the session's present agent. If that agent was removed, any later revision counts. */
  isOfStanding(session: Session, revision: number): boolean {
    const isShown =
      this.#parts.catalogue.agent(session.agent) === undefined ||
      revision <= this.withAgentRevision(session).contextRevision;
    return revision > session.contextRevision && isShown;
  }

  /** The session, as it is stored, once it is not being switched. */
  settled(id: string, signal: AbortSignal): Promise<Session> {
    const read = async () => {
      const session = await this.#stored(id);
      return isSettled(session) ? session : undefined;
    };
    return this.#parts.changes.until(id, read, signal);
  }

  /** By id; from outside only the asker's own. */
  async list(request: PageRequest & { caller: Caller }, signal: AbortSignal) {
    const { caller } = request;
    const list = ["sessions", caller.principal ?? ""];
    const where = (principal: string) => isOwner(principal, caller);
    const after = placeFromToken(list, request.pageToken);
    const limit = sizeOfPage(request.pageSize) + 1; // by one more those behind the page are known
    const elements = await firstKeys(await this.#parts.principals.read(signal), { where, after, limit });
    const { items, nextPageToken } = pageOf(list, { elements, placeOf: (id: string) => id }, request);
    const found = await Promise.all(items.map((id) => this.#parts.bucket.read(id, signal)));
    const sessions = found.flatMap((one) => (one && where(one.value.principal) ? one.value : []));
    return { sessions: sessions.map((session) => this.withAgentRevision(session)), nextPageToken };
  }

  /** Tells which are the caller's; one may have left. */
  async ownedBy(caller: Caller, signal: AbortSignal): Promise<(id: string) => boolean> {
    const principals = await this.#parts.principals.read(signal);
    return (id) => principals.get(id) === caller.principal;
  }

  async #stored(id: string): Promise<Session> {
    return (await this.#parts.bucket.read(id))?.value ?? refuseMissingSession(id);
  }

  withAgentRevision(session: Session): Session {
    const revision = this.#parts.catalogue.agent(session.agent)?.revision ?? 0;
    return { ...session, contextRevision: session.contextRevision + revision };
  }
}

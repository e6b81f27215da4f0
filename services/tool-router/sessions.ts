import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Session, SessionSchema, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { Catalogue } from "./catalogue/catalogue.ts";
import type { Documents, Stored } from "./documents.ts";

export interface SessionParts {
  documents: Documents<Session>;
  catalogue: Catalogue;
  clock: Clock;
  /** Takes down what is open for a session. */
  onClosed: (sessionId: string) => void;
}

/**
 * Sessions as they are stored. A stored session counts its switches in `agent_revision`; the revision that is told adds the
 * revision of the agent's configuration, so that it grows with each reload, too, and is the same on every router.
 */
export class Sessions {
  readonly #parts: SessionParts;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  /** An id that is taken by the same principal for the same agent is that session. */
  async open(request: { agent: string; sessionId: string; principal: string }): Promise<Session> {
    const { documents, catalogue, clock } = this.#parts;
    await catalogue.caughtUp();
    if (catalogue.agent(request.agent) === undefined) refuseAgent(request.agent);
    const { agent, principal } = request;
    const id = request.sessionId || randomUUID();
    const createdAt = timestampFromMs(clock.now());
    const session = create(SessionSchema, { id, agent, principal, createdAt, state: SessionState.ACTIVE });
    if ((await documents.create(id, session)) !== undefined) return this.#told(session);
    const standing = await this.#stored(id);
    const isSame = standing.agent === agent && standing.principal === principal;
    if (isSame && standing.state === SessionState.ACTIVE) return this.#told(standing);
    return refuse("already_exists", `there is another session ${id}`, {
      reason: "SESSION_EXISTS",
      metadata: { session_id: id },
    });
  }

  async get(id: string): Promise<Session> {
    return this.#told(await this.#stored(id));
  }

  /** The session with its agent, if both can be used. */
  async active(id: string): Promise<Session> {
    const session = await this.#stored(id);
    if (session.state === SessionState.CLOSED) {
      refuse("failed_precondition", `session ${id} is closed`, {
        reason: "SESSION_CLOSED",
        metadata: { session_id: id },
      });
    }
    return this.#told(session);
  }

  async list(
    pageSize: number,
    pageToken: string,
    signal: AbortSignal,
  ): Promise<{ sessions: Session[]; nextPageToken: string }> {
    const { items, nextPageToken } = await pageOf(this.#parts.documents.list(signal), pageSize || 100, pageToken);
    return { sessions: items.map((session) => this.#told(session)), nextPageToken };
  }

  async close(id: string): Promise<Session> {
    const update = await this.#parts.documents.update(id, (session) =>
      session === undefined || session.state === SessionState.CLOSED
        ? undefined
        : { ...session, state: SessionState.CLOSED },
    );
    this.#parts.onClosed(id);
    return this.#told(update.value ?? refuseMissing(id));
  }

  async #stored(id: string): Promise<Session> {
    return (await this.#parts.documents.read(id))?.value ?? refuseMissing(id);
  }

  #told(session: Session): Session {
    const revision = this.#parts.catalogue.agent(session.agent)?.revision ?? 0;
    return { ...session, agentRevision: session.agentRevision + revision };
  }
}

/** One page of what a bucket holds, by key; the token is the last key of the page before. */
export async function pageOf<T>(
  entries: AsyncIterable<Stored<T>>,
  size: number,
  token: string,
): Promise<{ items: T[]; nextPageToken: string }> {
  const found: Stored<T>[] = [];
  for await (const entry of entries) if (entry.key > token) found.push(entry);
  found.sort((one, other) => (one.key < other.key ? -1 : 1));
  const page = found.slice(0, size);
  return { items: page.map(({ value }) => value), nextPageToken: found.length > size ? page.at(-1)!.key : "" };
}

function refuseMissing(id: string): never {
  return refuse("not_found", `there is no session ${id}`, { reason: "SESSION_UNKNOWN", metadata: { session_id: id } });
}

export function refuseAgent(name: string): never {
  return refuse("not_found", `there is no agent ${JSON.stringify(name)}`, {
    reason: "AGENT_UNKNOWN",
    metadata: { agent: name },
  });
}

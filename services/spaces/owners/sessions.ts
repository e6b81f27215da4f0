import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import { BoundedMap } from "#runtime/collections/bounded-map.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { requireOwner } from "#runtime/failure/session-owner.ts";
import { type Caller, isServiceItself } from "#runtime/rpc/identity.ts";
import type { Owner } from "./owner.ts";

/** Reads a session from the router; refuses an unknown one. */
export type ReadSession = (sessionId: string) => Promise<Pick<Session, "principal" | "agent">>;

export interface Sessions {
  /**
   * Whose inbox, memory and active space are meant: those of the agent that is named, else of the one that is active in the
   * session. Refuses whoever does not own the session.
   */
  ownerFor(asked: { sessionId: string; agent: string }, caller: Caller): Promise<Owner>;
  /** Who opened it. */
  principalOf(sessionId: string): Promise<string>;
  /** The same; undefined for a session that there is not, or not any more. */
  findPrincipal(sessionId: string): Promise<string | undefined>;
  /** Whether one principal opened both. */
  haveOneOwner(one: string, other: string): Promise<boolean>;
}

const knownPrincipals = 10_000;

/** The principal that opened a session owns it for ever, so it is asked for once; the active agent changes. */
export function createSessions(readSession: ReadSession): Sessions {
  const principalsBySession = new BoundedMap<string, string>(knownPrincipals);

  const read = async (sessionId: string) => {
    const session = await readSession(sessionId);
    principalsBySession.set(sessionId, session.principal);
    return session;
  };
  const principalOf = async (sessionId: string) =>
    principalsBySession.get(sessionId) ?? (await read(sessionId)).principal;

  return {
    principalOf,
    findPrincipal: (sessionId) =>
      principalOf(sessionId).catch((error: unknown) => {
        if (error instanceof Failure && error.code === "not_found") return undefined;
        throw error;
      }),
    async haveOneOwner(one, other) {
      const [first, second] = await Promise.all([one, other].map(principalOf));
      return first === second;
    },
    async ownerFor({ sessionId, agent }, caller) {
      if (!isServiceItself(caller))
        requireOwner({ principal: await principalOf(sessionId) }, caller, `session ${sessionId}`);
      return { sessionId, agent: agent || (await read(sessionId)).agent };
    },
  };
}

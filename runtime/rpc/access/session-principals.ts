import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import { BoundedMap } from "#runtime/collections/bounded-map.ts";
import { Failure } from "#runtime/failure/failure.ts";

const KNOWN_PRINCIPALS = 10_000;

/**
 * Who opened each session, for services that read sessions from the router: it owns the session for ever, so it is asked for once.
 * `readSession` refuses an unknown session.
 */
export function createPrincipals<S extends Pick<Session, "principal">>(readSession: (sessionId: string) => Promise<S>) {
  const principalsBySession = new BoundedMap<string, string>(KNOWN_PRINCIPALS);

  async function read(sessionId: string): Promise<S> {
    const session = await readSession(sessionId);
    principalsBySession.set(sessionId, session.principal);
    return session;
  }

  async function principalOf(sessionId: string): Promise<string> {
    return principalsBySession.get(sessionId) ?? (await read(sessionId)).principal;
  }

  /** The same; undefined for a session that there is not, or not any more. */
  async function findPrincipal(sessionId: string): Promise<string | undefined> {
    try {
      return await principalOf(sessionId);
    } catch (error) {
      if (error instanceof Failure && error.code === "not_found") return undefined;
      throw error;
    }
  }

  return { read, principalOf, findPrincipal };
}

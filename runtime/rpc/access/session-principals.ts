import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { isFailure, unlessMissing } from "#runtime/failure/failure.ts";

const KNOWN_PRINCIPALS = 10_000;
/** When room is short a session is forgotten, and its id is free for another principal. */
const KNOWN_MS = 5_000;

/**
 * Who opened each session. It is asked for once in a while, and what was known counts while nobody can be asked. `readSession` refuses
 * an unknown session.
 */
export function createPrincipals<S extends Pick<Session, "principal">>(
  readSession: (sessionId: string) => Promise<S>,
  now: () => number = Date.now,
) {
  const known = new BoundedMap<string, { readonly principal: string; readonly askedAtMs: number }>(KNOWN_PRINCIPALS);

  async function read(sessionId: string): Promise<S> {
    const askedAtMs = now();
    const session = await readSession(sessionId);
    known.set(sessionId, { principal: session.principal, askedAtMs });
    return session;
  }

  async function principalOf(sessionId: string): Promise<string> {
    const standing = known.get(sessionId);
    if (standing && now() - standing.askedAtMs < KNOWN_MS) return standing.principal;
    if (standing) known.set(sessionId, { ...standing, askedAtMs: now() }); // nobody else waits for the same answer, or the same silence
    try {
      return (await read(sessionId)).principal;
    } catch (error) {
      if (standing && !isFailure(error, "not_found")) return standing.principal;
      known.delete(sessionId);
      throw error;
    }
  }

  /** The same; undefined for a session that there is not, or not any more. */
  const findPrincipal = (sessionId: string): Promise<string | undefined> => principalOf(sessionId).catch(unlessMissing);

  return { read, principalOf, findPrincipal };
}

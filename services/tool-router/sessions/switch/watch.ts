import { type Session, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { refuseMissingSession } from "#runtime/failure/session-owner.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import type { SessionChange, SessionChanges } from "../session-changes.ts";
import type { Sessions } from "../sessions.ts";

export interface WatchParts {
  sessions: Sessions;
  changes: SessionChanges;
  catalogue: Pick<Catalogue, "agentChanges">;
}

/**
 * The session, and then each of its later states, in order and none left out; also when its agent was
 * loaded afresh. Ends after the session is closed, and with the signal's reason.
 */
export async function* watchSession(
  { sessions, changes, catalogue }: WatchParts,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<Session> {
  using reader = changes.follow(id);
  using _listening = catalogue.agentChanges.listen(reader.wake);
  let standing: SessionChange = (await sessions.bucket.read(id)) ?? refuseMissingSession(id);
  let shownRevision = 0;
  for (;;) {
    const { arrived } = reader;
    const session = sessions.withAgentRevision(standing.value);
    if (shownRevision !== session.contextRevision || shownRevision === 0) yield session;
    shownRevision = session.contextRevision;
    if (session.state === SessionState.CLOSED) return;
    await unlessAborted(arrived, signal);
    for (let next = reader.take(); next !== undefined; next = reader.take()) {
      if (next.revision <= standing.revision) continue;
      if (next.value.principal !== standing.value.principal) refuseMissingSession(id); // it was forgotten, and this is another
      standing = next;
      const told = sessions.withAgentRevision(next.value);
      yield told;
      if (told.state === SessionState.CLOSED) return;
      shownRevision = told.contextRevision;
    }
  }
}

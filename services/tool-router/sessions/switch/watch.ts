import { type Session, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { refuseMissing } from "../failures.ts";
import type { SessionNews } from "../session-changes.ts";
import type { Sessions } from "../sessions.ts";

export interface WatchParts {
  sessions: Sessions;
  news: SessionNews;
  catalogue: Pick<Catalogue, "onAgentsChange">;
}

/**
 * The session as it stands, and then each state that it comes through, in order and none left out; also when its agent was
 * loaded afresh. Ends after the session is closed, and with the signal's reason.
 */
export async function* watchSession(
  { sessions, news, catalogue }: WatchParts,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<Session> {
  using reader = news.follow(id);
  using _listening = catalogue.onAgentsChange(reader.wake);
  let standing = (await sessions.documents.read(id)) ?? refuseMissing(id);
  let told = 0;
  for (;;) {
    const { arrived } = reader;
    const session = sessions.told(standing.value);
    if (told !== session.contextRevision || told === 0) yield session;
    told = session.contextRevision;
    if (session.state === SessionState.CLOSED) return;
    await unlessAborted(arrived, signal);
    for (let next = reader.take(); next !== undefined; next = reader.take()) {
      if (next.revision <= standing.revision) continue;
      standing = next;
      yield sessions.told(next.value);
      if (next.value.state === SessionState.CLOSED) return;
      told = sessions.told(next.value).contextRevision;
    }
  }
}

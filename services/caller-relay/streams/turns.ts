import type { CallerStream } from "./stream-record.ts";

export type Turns = ReturnType<typeof createTurns>;

/** Which of a session's streams gets the next request. */
export function createTurns() {
  const turnsBySession = new Map<string, number>();
  return {
    next(sessionId: string, streams: readonly [CallerStream, ...CallerStream[]]): CallerStream {
      if (streams.length === 1) return streams[0];
      const turn = (turnsBySession.get(sessionId) ?? 0) % streams.length;
      turnsBySession.set(sessionId, turn + 1);
      return streams[turn] ?? streams[0];
    },
    /** The session's streams have changed. */
    forget: (sessionId: string) => void turnsBySession.delete(sessionId),
  };
}

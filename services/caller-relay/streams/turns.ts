import type { CallerStream } from "./stream-record.ts";

/** Which of a session's streams gets the next request. */
export interface Turns {
  next(sessionId: string, streams: readonly [CallerStream, ...CallerStream[]]): CallerStream;
  /** The session's streams have changed. */
  forget(sessionId: string): void;
}

export function createTurns(): Turns {
  const turnsBySession = new Map<string, number>();
  return {
    next(sessionId, streams) {
      if (streams.length === 1) return streams[0];
      const turn = (turnsBySession.get(sessionId) ?? 0) % streams.length;
      turnsBySession.set(sessionId, turn + 1);
      return streams[turn] ?? streams[0];
    },
    forget: (sessionId) => void turnsBySession.delete(sessionId),
  };
}

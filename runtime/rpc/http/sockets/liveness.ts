import type { Http2Session } from "node:http2";
import { startTimer } from "../../../time/timer.ts";
import type { HttpRequest } from "../messages.ts";

const PING_EVERY_MS = 500;
const ANSWER_WITHIN_MS = 2_000;
/** TCP's own: after a second of silence, every second, so many times. */
const PROBES = { initialDelay: 1_000, interval: 1_000, count: 2 };

/**
 * Notices within 3 s that the peer's cable was cut, which sends no end, and ends its connection, until the returned function is called.
 * HTTP/2 peers are pinged. Over HTTP/1.1 TCP's own probes have to do, which wait while something that was sent is unacknowledged.
 */
export function endWhenSilent(request: HttpRequest): () => void {
  const session = "stream" in request ? request.stream.session : undefined;
  if (session !== undefined) return pinged(session);
  request.socket.setKeepAlive(true, PROBES.initialDelay, PROBES.interval, PROBES.count);
  return () => {};
}

/** By how many requests; it has an entry for as long as it is pinged. */
const wantedBySession = new WeakMap<Http2Session, number>();

function pinged(session: Http2Session): () => void {
  const wanted = wantedBySession.get(session);
  wantedBySession.set(session, (wanted ?? 0) + 1);
  if (wanted === undefined) ping(session);
  return () => void wantedBySession.set(session, (wantedBySession.get(session) ?? 1) - 1);
}

function ping(session: Http2Session): void {
  if (session.destroyed || session.closed) return;
  if (wantedBySession.get(session) === 0) return void wantedBySession.delete(session);
  let isAnswered = false;
  session.ping(() => {
    isAnswered = true;
  });
  const stopWaiting = startTimer(ANSWER_WITHIN_MS, () => {
    // an answer that has come while this process was busy is read before this is decided
    setImmediate(() => {
      if (!isAnswered) session.destroy();
    });
  });
  startTimer(PING_EVERY_MS, () => {
    if (isAnswered) stopWaiting();
    ping(session);
  });
}

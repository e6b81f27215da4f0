/**
 * Looks into the inboxes of idle sessions. While the services that it asks are silent, one look at a time finds out whether they
 * are back: the others would wait for the same silence, each in a slot that a run could have. The longer it lasts, the later all of them
 * come again, each at a moment of its own.
 */

import { Failure } from "#runtime/failure/failure.ts";
import { isTransient } from "../../../loop/errors/retry-while-unavailable.ts";
import type { WorkerOptions } from "../worker-options.ts";

/** A time: nobody answered, or another look is under way to find out whether somebody does. */
export type InboxLook = "started" | "nothing" | { readonly againMs: number };

const firstMs = 1_500;
const mostMs = 5_000;

export function createInboxLook({
  startFromInbox,
  abandon,
  logger,
}: Pick<WorkerOptions, "startFromInbox" | "abandon" | "logger">): (sessionId: string) => Promise<InboxLook> {
  let isAway = false;
  let isProbing = false;
  let longestMs = firstMs;
  const again = () => ({ againMs: longestMs * (1 / 3 + (2 / 3) * Math.random()) });

  return async (sessionId) => {
    if (isAway && isProbing) return again();
    const isProbe = isAway;
    if (isProbe) isProbing = true;
    try {
      const isStarted = await startFromInbox(sessionId, abandon);
      isAway = false;
      longestMs = firstMs;
      return isStarted ? "started" : "nothing";
    } catch (error) {
      abandon.throwIfAborted();
      if (error instanceof Failure && error.code === "not_found") return "nothing"; // a session that is gone
      isAway = isTransient(error);
      logger.warn({ err: error, sessionId }, "an inbox could not be looked into: it is tried again");
      if (isProbe) longestMs = Math.min(mostMs, longestMs * 2);
      return again();
    } finally {
      if (isProbe) isProbing = false;
    }
  };
}

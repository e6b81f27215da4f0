import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import type { OperatorLog } from "#runtime/lifecycle/logger.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { retryWhileUnavailable } from "../errors/retry-while-unavailable.ts";
import { waitFor } from "../errors/wait-for.ts";
import type { Inbox, InboxContents } from "./inbox.ts";
import type { DeliveredInbox } from "./take-events.ts";

export interface ReadInboxOptions {
  readonly inbox: Pick<Inbox, "getRunContext" | "acknowledgeInbox">;
  readonly clock: Clock;
  readonly logger: OperatorLog;
}

/** Services that start together are there by then. */
const patienceMs = 3_000;

const nothing: InboxContents = { instructions: [], events: [] };

/**
 * Reads the inbox for a run. When spaces stay unavailable, the run goes on without memory, and events wait for the next run. Only
 * a run that the inbox started waits for it.
 */
export async function readInbox(
  options: ReadInboxOptions,
  state: FoldedRun,
  signal: AbortSignal,
): Promise<Omit<DeliveredInbox, "takenEventIds">> {
  const { inbox, clock, logger } = options;
  const { sessionId, agent, principal } = state.accepted;
  const by = { signal, principal };
  const read = async (): Promise<InboxContents> => {
    const { parts, events } = await inbox.getRunContext({ sessionId, agent }, by);
    return { instructions: parts, events };
  };
  const contents = await (needsInbox(state)
    ? waitFor({ clock, signal, endReason: RunEndReason.INBOX_UNAVAILABLE, what: "the inbox" }, read)
    : retryWhileUnavailable({ clock, signal, patienceMs }, read).catch((error: unknown) => {
        signal.throwIfAborted();
        logger.warn({ err: error, runId: state.runId }, "a run goes on without its inbox and memory");
        return nothing;
      }));
  return {
    ...contents,
    async acknowledge(eventIds) {
      const request = { sessionId, agent, eventIds: [...eventIds] };
      await inbox.acknowledgeInbox(request, by).catch((error: unknown) => {
        logger.warn({ err: error, runId: state.runId, eventIds }, "events that joined a run still wait in the inbox");
      });
    },
  };
}

/** Whether the run has nothing but its inbox to answer. */
export function needsInbox({ accepted, inbox, turns }: FoldedRun): boolean {
  return accepted.input.length === 0 && accepted.fork === undefined && inbox === undefined && turns.length === 0;
}

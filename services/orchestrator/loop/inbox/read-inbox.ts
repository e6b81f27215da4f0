import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import type { OperatorLog } from "#runtime/lifecycle/logger.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { patiently } from "../errors/patiently.ts";
import type { Inbox, Told } from "./inbox.ts";
import type { News } from "./take-events.ts";

export interface NewsOptions {
  readonly inbox: Inbox;
  readonly clock: Clock;
  readonly logger: OperatorLog;
}

const nothing: Told = { instructions: "", events: [] };

/**
 * What a run is told. A run goes on without it when it cannot be had: memory is missed, news wait for the next run. Only one
 * that the news started waits for them.
 */
export async function readNews(
  options: NewsOptions,
  state: FoldedRun,
  signal: AbortSignal,
): Promise<Omit<News, "takenEventIds">> {
  const { inbox, logger } = options;
  const { sessionId, agent, principal } = state.accepted;
  const recipient = { sessionId, agent, principal };
  const told = await (needsNews(state)
    ? patiently({ clock: options.clock, signal, reason: RunEndReason.INBOX_UNAVAILABLE, what: "the inbox" }, () =>
        inbox.tell(recipient, signal),
      )
    : inbox.tell(recipient, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        logger.warn({ err: error, runId: state.runId }, "a run goes on without its inbox and memory");
        return nothing;
      }));
  return {
    ...told,
    acknowledge: (eventIds) =>
      inbox.acknowledge(recipient, eventIds, signal).catch((error: unknown) => {
        logger.warn({ err: error, runId: state.runId, eventIds }, "news that joined a run still wait in the inbox");
      }),
  };
}

/** Whether there is nothing else that the run could be about. */
export function needsNews({ accepted, inbox, turns }: FoldedRun): boolean {
  return accepted.input.length === 0 && accepted.fork === undefined && inbox === undefined && turns.length === 0;
}

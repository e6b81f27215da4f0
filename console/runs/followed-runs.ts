import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Run } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService, type WatchRunsRequestSchema, type WatchRunsResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { clientOf } from "../suite/connection.ts";
import type { Followed } from "../suite/live.ts";

/** Runs as a screen holds them. */
export interface RunsBook {
  /** Lists them anew. */
  list(signal: AbortSignal): Promise<void>;
  /** Takes in how a run stands. */
  put(run: Run): void;
  /** Forgets one that is deleted, or is none of these any more. */
  remove(runId: string): void;
}

/**
 * Keeps a book up to date: the runs are listed when the watch begins, and when it has missed something. It begins anew whenever it is
 * opened, as one that went on would not tell which runs were deleted meanwhile.
 */
export function followRuns(
  filter: Omit<MessageInitShape<typeof WatchRunsRequestSchema>, "$typeName">,
  book: RunsBook,
): Followed<WatchRunsResponse> {
  return {
    async *open(signal) {
      for await (const message of clientOf(RunService).watchRuns(filter, { signal })) {
        const { update } = message;
        if (update.case === "start" || update.case === "gap") await book.list(signal); // before it counts as taken
        yield message;
      }
      throw new ConnectError("the stream ended", Code.Unavailable);
    },
    take({ update }) {
      if (update.case === "deleted") book.remove(update.value.runId);
      if (update.case !== "event") return;
      const { run, runId } = update.value;
      if (run) book.put(run);
      else book.remove(runId);
    },
  };
}

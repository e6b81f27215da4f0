import { Code, ConnectError } from "@connectrpc/connect";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { Run } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { clientOf } from "../../suite/connection.ts";

/** The events of a run, up to the last one that is known of it; throws where the stream ends before. */
export async function readLog({ id, lastSequence }: Pick<Run, "id" | "lastSequence">): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const { update } of clientOf(RunService).watchRun({ runId: id, fromSequence: 0n })) {
    if (update.case === "event") events.push(update.value);
    if (events.at(-1)?.sequence === lastSequence) break;
  }
  if (events.at(-1)?.sequence !== lastSequence) throw new ConnectError(`the log of ${id} was cut off`, Code.DataLoss);
  return events;
}

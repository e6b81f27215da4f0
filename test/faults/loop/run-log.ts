import { fromBinary } from "@bufbuild/protobuf";
import { StoredRunEventSchema } from "#gen/toolbus/internal/run/v1/run_log_pb.ts";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";

/** The log of a run, with the claim under which each event was written. */
export async function readLog(bus: Bus, runId: string): Promise<{ event: RunEvent; epoch: number }[]> {
  const stored = await Array.fromAsync(readSubject(bus, `toolbus.run.${runId}`));
  return stored.map(({ data }) => {
    const { event, epoch } = fromBinary(StoredRunEventSchema, data);
    if (event === undefined) throw new Error(`run ${runId} has a record without an event`);
    return { event, epoch };
  });
}

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import type { WorkerOptions } from "../worker-options.ts";

type Parts = Pick<WorkerOptions, "log" | "clock" | "logger">;

/** Never rejects: the next look at the session tries again. */
export async function endBroken(parts: Parts, runId: string): Promise<void> {
  await writeEnd(parts, runId).catch((err: unknown) => parts.logger.warn({ err, runId }, "a broken run is not ended"));
}

/** The end of a run whose log has lost events, unless it has one: no process can go on with it. */
async function writeEnd({ log, clock, logger }: Parts, runId: string): Promise<void> {
  const last = await log.last(runId);
  if (last === undefined || last.event.event.case === "ended") return;
  const error = "the log of the run has lost events";
  const value = { state: RunState.FAILED, endReason: RunEndReason.INTERNAL_ERROR, error };
  const sequence = last.event.sequence + 1;
  const createTime = timestampFromMs(clock.now());
  const event = create(RunEventSchema, { runId, sequence, createTime, event: { case: "ended", value } });
  const outcome = await log.append({ event, epoch: 0, instance: "" }, last.position);
  if (outcome.kind === "appended") logger.error({ runId }, `a run is ended: ${error}`);
}

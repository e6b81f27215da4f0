/*
 * What does a long run take in the log, compared with the bytes of its items? A hundred calls whose results and arguments make
 * a context of two hundred thousand tokens, at four bytes a token.
 */

import { toBinary } from "@bufbuild/protobuf";
import { ItemSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import { type BenchResult, rounded } from "../../measuring/result.ts";
import { quiet } from "../plan.ts";
import { followToEnd, startRun, type World } from "../world.ts";

const calls = 100;
const contextBytes = 200_000 * 4;

export async function measureLogBytes(world: World): Promise<BenchResult> {
  const argumentBytes = contextBytes / calls / 2; // the tool gives it back: it stands in the call and in its result
  const { id } = await startRun(world, { ...quiet, id: crypto.randomUUID(), turns: calls, argumentBytes });
  await followToEnd(world, id, false);
  const { run } = await world.runs.getRun({ runId: id });
  const itemBytes = (run?.items ?? []).reduce((sum, item) => sum + toBinary(ItemSchema, item).length, 0);
  let logBytes = 0;
  for await (const { subject, data, headers } of readSubject(world.bus, `toolbus.run.${id}`)) {
    logBytes += subject.length + data.length + (headers?.toString().length ?? 0);
  }
  return {
    bench: "loop",
    metric: "log_bytes",
    value: logBytes,
    unit: "B",
    baseline: itemBytes,
    ratio: rounded(logBytes / itemBytes),
  };
}

import { hash } from "node:crypto";
import { clone, create, equals } from "@bufbuild/protobuf";
import { LimitsSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { type RunAccepted, RunAcceptedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type Item, type RunOptions, RunOptionsSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { isSameResult } from "#runtime/results/shortened.ts";
import type { FoldedRun } from "../../../log/state/fold.ts";

/** What the creator of a run says of it; the rest is the session's. */
export type Asked = Pick<RunAccepted, "input" | "previousRunId"> & Partial<Pick<RunAccepted, "options" | "fork">>;

/** A key without a session leads to a session, too: a repetition finds the run there. */
export function sessionOfKey(...names: string[]): string {
  return `key_${hash("sha256", JSON.stringify(names), "hex").slice(0, 40)}`;
}

/**
 * LOOP-13: a key stands for one request. The run that it leads to answers no other one: what differs is named. Limits may
 * differ, as the time that is left does with each repetition.
 */
export function refuseOther({ runId, accepted }: Pick<FoldedRun, "runId" | "accepted">, asked: Asked): void {
  const first = partsOf(accepted);
  const input = asked.input.map((item, n) => (isKept(accepted.input[n], item) ? accepted.input[n]! : item));
  const again = partsOf({ ...asked, input });
  const fields = Object.keys(first).filter((name) => {
    const [one = nothing, other = nothing] = [first[name], again[name]];
    return !equals(RunAcceptedSchema, one, other);
  });
  if (fields.length === 0) return;
  const what = fields.join(", ");
  refuse("already_exists", `the idempotency key was used for run ${runId}, whose request differs in ${what}`, {
    reason: "IDEMPOTENCY_KEY_REUSED",
    metadata: { run_id: runId, fields: what },
  });
}

/** Whether the run has the output: without its result, as it repeats an accepted one, or shortened. */
function isKept(kept: Item | undefined, { item }: Item): boolean {
  if (kept?.item.case !== "functionCallOutput" || item.case !== "functionCallOutput") return false;
  const [{ callId, result: first }, { result: again }] = [kept.item.value, item.value];
  const isSame = first === undefined || (first.isError === again?.isError && isSameResult(first, again));
  return callId === item.value.callId && isSame;
}

const nothing = create(RunAcceptedSchema);

function partsOf({ input, options, previousRunId, fork }: Asked): Record<string, RunAccepted> {
  return {
    input: create(RunAcceptedSchema, { input }),
    options: create(RunAcceptedSchema, { options: withoutAmounts(options) }),
    previous_run_id: create(RunAcceptedSchema, { previousRunId }),
    at_sequence: create(RunAcceptedSchema, fork && { fork }),
  };
}

/** The time that is left is another at each repetition. */
function withoutAmounts(options: RunOptions | undefined): RunOptions {
  const told = options === undefined ? create(RunOptionsSchema) : clone(RunOptionsSchema, options);
  const stopAtTools = told.limits?.stopAtTools ?? [];
  delete told.limits;
  if (stopAtTools.length > 0) told.limits = create(LimitsSchema, { stopAtTools });
  return told;
}

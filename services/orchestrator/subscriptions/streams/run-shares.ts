import type { Bus } from "#runtime/bus/bus.ts";
import type { QuotaOptions } from "#runtime/bus/quota/quota.ts";
import { bytesByHolder, rememberingHolders, sizesOf } from "#runtime/bus/quota/usage.ts";
import type { RunLog } from "../../log/journal.ts";
import { runSubjects } from "../run-subjects.ts";

const STREAM = "TOOLBUS_RUNS";
const LOGS = runSubjects.log("");

/** Whose the logs of runs are. What stands beside them, queues and keys, is small, and nobody's. */
export function runShares(bus: Bus, log: Pick<RunLog, "first">): Omit<QuotaOptions, "onFault"> {
  const holderOf = rememberingHolders(async (subject) => {
    const runId = subject.slice(LOGS.length);
    if (runId.includes(".")) return "";
    const { event } = (await log.first(runId))?.event ?? {};
    return event?.case === "accepted" ? event.value.principal : "";
  });
  return {
    stream: STREAM,
    measure: (signal) => bytesByHolder(sizesOf(bus, STREAM, signal), ({ subject }) => holderOf(subject)),
    holds: "runs",
    remedy: "wait until old sessions go, or have an operator set TOOLBUS_RUN_RETENTION lower",
  };
}

import type { Figure } from "../../command/report.ts";
import type { RouterRunResult } from "../run.ts";
import { hasResult } from "./check.ts";
import type { CallHistory, Strike } from "./history.ts";
import { reasonOf } from "./reasons.ts";

const leastShare = 0.99;

/** What came of a run, in numbers. */
export function figuresFrom(result: RouterRunResult, wanted: { calls: number; kills: number }): Figure[] {
  const { history, violations, durationMs } = result;
  const { calls, strikes, endedStreams } = history;
  const count = (holds: (call: CallHistory) => boolean) => calls.filter(holds).length;
  const struck = (wantedKind: Strike["kind"]) => strikes.filter(({ kind }) => kind === wantedKind).length;
  const told = (metric: string, value: number, unit = "") => ({ metric, value, unit });
  const share = calls.length === 0 ? 0 : count(hasResult) / calls.length;
  return [
    told("duration", Math.round(durationMs / 1_000), "s"),
    { ...told("calls", calls.length), least: wanted.calls },
    { ...told("routers_killed", struck("kill")), least: wanted.kills },
    told("routers_frozen", struck("freeze")),
    told("routers_starved", strikes.filter((strike) => isStarved(strike, strikes)).length),
    told("watch_streams_ended", endedStreams.length),
    told(
      "calls_repeated",
      count(({ attempts }) => attempts > 1),
    ),
    told(
      "handed_again",
      count(({ handings }) => new Set(handings.map(({ watcher }) => watcher)).size > 1),
    ),
    told(
      "executed_again",
      count(({ executions }) => executions.length > 1),
    ),
    told(
      "submissions",
      calls.reduce((sum, { submissions }) => sum + submissions.length, 0),
    ),
    told(
      "inbox_events",
      count(({ inbox }) => inbox.length > 0),
    ),
    ...reasonFigures(calls),
    { ...told("calls_with_result", Math.floor(share * 10_000) / 100, "%"), least: leastShare * 100 },
    { ...told("violations", violations.length), most: 0 },
  ];
}

/** Not by a freeze. */
function isStarved({ kind, router, fromMs, toMs }: Strike, strikes: readonly Strike[]): boolean {
  const isFrozen = (one: Strike) =>
    one.kind === "freeze" && router.startsWith(one.router) && one.fromMs < toMs && one.toMs > fromMs;
  return kind === "starved" && !strikes.some(isFrozen);
}

/** How many ended without a result, by the reason that their record tells. */
function reasonFigures(calls: readonly CallHistory[]): Figure[] {
  const counts = new Map<string, number>();
  for (const call of calls) {
    if (hasResult(call) || !call.record?.isError) continue;
    const reason = reasonOf(call.record.outputJson) ?? "no reason";
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].sort().map(([reason, value]) => ({ metric: `ended: ${reason}`, value, unit: "" }));
}

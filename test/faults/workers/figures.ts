import type { Figure } from "../command/report.ts";
import type { CyclesResult } from "./cycles/cycles.ts";
import type { Difference, FuzzResult } from "./fuzz/fuzz.ts";
import type { Rule } from "./storm/judge.ts";
import type { StormResult } from "./storm/storm.ts";
import type { PoolWorld } from "./world.ts";

export interface Report {
  readonly figures: readonly Figure[];
  /** What was found, each kind once. */
  readonly examples: readonly string[];
}

export function figuresOfStorm(result: StormResult, { unaskedEnds }: Pick<PoolWorld, "unaskedEnds">): Report {
  const broken = (rule: Rule) => result.violations.filter((violation) => violation.rule === rule).length;
  return {
    figures: [
      { metric: "calls", value: result.calls },
      ...[...result.endings].sort().map(([ending, value]) => ({ metric: `calls_ended: ${ending}`, value })),
      { metric: "calls_that_killed_their_worker", value: result.fatal },
      { metric: "calls_crossed", value: broken("crossed"), most: 0 },
      { metric: "calls_told_untruly", value: broken("untrue"), most: 0 },
      { metric: "calls_begun_twice", value: broken("twice"), most: 0 },
      { metric: "pools_died", value: unaskedEnds.length, most: 0 },
      { metric: "plain_call_p50_ms", value: Math.round(result.medianMs) },
      { metric: "plain_call_max_ms", value: Math.round(result.slowestMs) },
      { metric: "storm_s", value: Math.round(result.durationMs / 1_000) },
    ],
    examples: [...result.violations.slice(0, 20).map(({ rule, what }) => `${rule}: ${what}`), ...unaskedEnds],
  };
}

export function figuresOfCycles(result: CyclesResult, { unaskedEnds }: Pick<PoolWorld, "unaskedEnds">): Report {
  return {
    figures: [
      ...[...result.ends].sort().map(([end, value]) => ({ metric: `cycles: ${end}`, value })),
      { metric: "processes_seen", value: result.processesSeen },
      { metric: "processes_left", value: result.processesLeft, most: 0 },
      { metric: "descriptors_left_in_pool", value: result.descriptorsLeft, most: 0 },
      { metric: "descriptors_left_in_broker", value: result.brokerDescriptorsLeft, most: 0 },
      { metric: "pools_died_unasked", value: unaskedEnds.length, most: 0 },
      { metric: "cycles_s", value: Math.round(result.durationMs / 1_000) },
    ],
    examples: unaskedEnds,
  };
}

export function figuresOfFuzz(result: FuzzResult): Report {
  const { files, takenByBoth, refusedByBoth, stricter, laxer, readDifferently } = result;
  const wordless = stricter.filter(({ ours }) => ours.kind === "refused" && ours.words === "").length;
  return {
    figures: [
      { metric: "files_read", value: files },
      { metric: "files_taken_by_both", value: takenByBoth },
      { metric: "files_refused_by_both", value: refusedByBoth },
      { metric: "files_refused_by_pool_alone", value: stricter.length },
      { metric: "files_refused_without_words", value: wordless, most: 0 },
      { metric: "files_offered_that_uv_refuses", value: laxer.length, most: 0 },
      { metric: "files_read_differently", value: readDifferently.length, most: 0 },
    ],
    examples: [
      ...eachKind("refused by the pool alone", stricter),
      ...eachKind("offered, and refused by uv", laxer),
      ...eachKind("read differently", readDifferently),
    ],
  };
}

/** One example for each pair of words, which name other places each time. */
function eachKind(title: string, differences: readonly Difference[]): string[] {
  const kinds = Map.groupBy(differences, ({ uv, ours }) =>
    JSON.stringify([uv, ours]).replace(/\d+/g, "").slice(0, 100),
  );
  return [...kinds.values()].map((same) => {
    const { text, uv, ours } = same[0]!;
    return `${title}, ${same.length} times: ${JSON.stringify(text)}\n  uv: ${wordsOf(uv)}\n  the pool: ${wordsOf(ours)}`;
  });
}

function wordsOf(reading: Difference["uv"]): string {
  return reading.kind === "refused" ? reading.words : `takes it, with ${reading.packages?.join(", ") || "no package"}`;
}

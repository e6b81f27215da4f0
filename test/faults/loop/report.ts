import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { toJson } from "@bufbuild/protobuf";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { RunHistory, Seen } from "./history/history.ts";
import { allFaults, allPoints, nameOf } from "./plan/points.ts";
import type { TrialOutcome } from "./trial.ts";
import type { World } from "./world.ts";

/** How often each fault was struck at each point, by the name of the pair. */
export function countsByPair(outcomes: readonly TrialOutcome[]): Map<string, number> {
  const hit = outcomes.filter(({ isHit }) => isHit);
  const byName = Map.groupBy(hit, ({ trial }) => nameOf(trial.pair));
  return new Map([...byName].map(([name, of]) => [name, of.length] as const).sort());
}

export function coverageTable(outcomes: readonly TrialOutcome[]): string {
  const counts = countsByPair(outcomes);
  const columns = allFaults.map((fault) => Math.max(fault.length, 3));
  const first = Math.max(...allPoints.map((point) => point.length));
  const line = (head: string, cells: readonly string[]) =>
    [head.padEnd(first), ...cells.map((cell, index) => cell.padStart(columns[index] ?? 0))].join("  ");
  const rows = allPoints.map((point) =>
    line(
      point,
      allFaults.map((fault) => String(counts.get(nameOf({ point, fault })) ?? 0)),
    ),
  );
  return [line("", allFaults), ...rows].join("\n");
}

/** Writes what is known of a trial into a file, and gives its path. */
export async function writeTrial(directory: string, outcome: TrialOutcome, world: World): Promise<string> {
  const { trial, histories, violations } = outcome;
  const services = [...world.orchestrators, ...world.routers];
  const text = [
    `${nameOf(trial.pair)}, seed ${trial.seed}`,
    ...violations.map(({ rule, what }) => `${rule}: ${what}`),
    ...histories.flatMap(linesOf),
    ...services.flatMap(({ instance, lines }) => [`--- ${instance}`, ...lines.slice(-80)]),
  ].join("\n");
  await mkdir(directory, { recursive: true });
  const path = join(directory, `${trial.token}.txt`);
  await writeFile(path, text);
  return path;
}

function linesOf({ runId, events, epochs, effects, watched, canceledAtMs }: RunHistory): string[] {
  return [
    `=== run ${runId}${canceledAtMs === undefined ? "" : `, canceled at ${canceledAtMs}`}`,
    ...events.map((event, index) => `epoch ${epochs[index]} ${JSON.stringify(toJson(RunEventSchema, event))}`),
    ...effects.map(({ tool, key, atMs }) => `effect ${tool} ${key} at ${atMs}`),
    ...watched.flatMap(({ name, hasEnded, seen }) => [
      `--- the watcher that ${name}${hasEnded ? "" : ", whose stream did not end"}`,
      ...seen.map(lineOf),
    ]),
  ];
}

function lineOf(seen: Seen): string {
  if (seen.kind === "event") return `  ${seen.event.sequence} ${seen.event.event.case}`;
  if (seen.kind === "replaced") {
    const { turn, attempt, deltaCount, text } = seen.replaced;
    return `  replaced ${turn}/${attempt} after ${deltaCount}: ${text}`;
  }
  const { turn, attempt, index: n, delta } = seen.delta;
  return `  delta ${turn}/${attempt}/${n} ${delta.case}: ${JSON.stringify(delta.value)}`;
}

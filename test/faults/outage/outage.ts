import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openTreeCopy } from "../processes/tree.ts";
import { NOTICED_AFTER_MS } from "./check.ts";
import type { ClientCall, Strike, StrikeKind } from "./history.ts";
import { type OutageResult, runOutages } from "./run.ts";
import { strikeMeanings } from "./strikes.ts";

const kinds = Object.keys(strikeMeanings) as StrikeKind[];
const lines = kinds.map((kind) => `  ${kind.padEnd(16)} ${strikeMeanings[kind]}`);

const HELP = `usage: npm run faults -- outage [options]

Two tool-routers, worker-pools, mcp-bridges and orchestrators, and a broker, are struck while clients call tools of all kinds through a
gateway, each call once. What the clients see is judged, and how often each call happened.

  --seed N         who is struck, how, and for how long (1)
  --strikes N      how often (10)
  --only STRIKE    this one; may be given more than once
  --nodes N        of the broker, 1 or 3 (1)
  --least N        how long a strike lasts, in seconds (5)
  --most N         (20)
  --broker KIND    quick: it drops who is silent after 3 s; slow: it does not notice (slow)
  --revision REV   of the services, in place of the files as they are
  --json           one line of JSON for each figure
  --help           this text

strikes:
${lines.join("\n")}`;

const number = (byDefault: number) => ({ type: "string" as const, default: String(byDefault) });
const options = {
  seed: number(1),
  strikes: number(10),
  least: number(5),
  most: number(20),
  only: { type: "string", multiple: true },
  nodes: number(1),
  broker: { type: "string", default: "slow" },
  revision: { type: "string" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

const TOLD = 20;

/** Gives the exit code. */
export async function runOutageFaults(args: string[]): Promise<number> {
  const values = parse(args);
  if (typeof values === "string") {
    console.error(`${values}\n${HELP}`);
    return 2;
  }
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  await using tree = await openTreeCopy({ revision: values.revision });
  const result = await runOutages({
    tree: tree.directory,
    seed: Number(values.seed),
    strikes: Number(values.strikes),
    leastMs: Number(values.least) * 1_000,
    mostMs: Number(values.most) * 1_000,
    nodes: values.nodes === "3" ? 3 : 1,
    kinds: kindsOf(values),
    slowBroker: values.broker === "slow",
    onProgress: (line) => console.error(line),
  });
  const figures = figuresFrom(result);
  if (values.json) for (const figure of figures) console.log(JSON.stringify({ fault: "outage", ...figure }));
  else console.table(figures);
  await tellViolations(result, values.seed);
  return figures.some(({ value, limit }) => limit !== undefined && value > limit) ? 1 : 0;
}

function parse(args: string[]) {
  try {
    const { values } = parseArgs({ args, options });
    const { seed, strikes, least, most, broker, nodes, only = [] } = values;
    if (![seed, strikes, least, most].every((value) => Number(value) >= 0))
      return "--seed, --strikes, --least and --most are numbers";
    if (nodes !== "1" && nodes !== "3") return "--nodes is 1 or 3";
    if (broker !== "slow" && broker !== "quick") return "--broker is slow or quick";
    const unknown = only.find((kind) => !kinds.includes(kind as StrikeKind));
    if (unknown !== undefined) return `there is no strike ${unknown}`;
    return kindsOf(values).length > 0 ? values : `with --nodes ${nodes}, none of these strikes can be made`;
  } catch (error) {
    return messageFromUnknown(error);
  }
}

/** The disk is that of a single node, and nodes can be away where there are three. */
function kindsOf({ only, nodes }: { only?: string[] | undefined; nodes: string }): StrikeKind[] {
  const missing: StrikeKind[] = nodes === "3" ? ["disk"] : ["node", "nodes"];
  return kinds.filter((kind) => !missing.includes(kind) && (only?.includes(kind) ?? true));
}

interface Figure {
  readonly metric: string;
  readonly value: number;
  readonly unit: string;
  /** What the value must not exceed; absent where it is only told. */
  readonly limit?: number;
}

function figuresFrom({ history, violations, unaskedEnds }: OutageResult): Figure[] {
  const { calls, strikes, stalls } = history;
  const faults = calls.filter(({ told }) => told.kind === "fault");
  const told = (metric: string, value: number, unit = "") => ({ metric, value, unit });
  const others = calls.filter(({ isLarge }) => !isLarge);
  const slowest = Math.max(0, ...others.map(({ fromMs, toMs }) => toMs - fromMs));
  const rss = new Map(strikes.flatMap(({ rssBytes = {} }) => Object.entries(rssBytes)));
  const during = (kind: StrikeKind) => {
    const [found, p99] = [strikes.filter((strike) => strike.kind === kind), p99Of(others, strikes, kind)];
    return found.length === 0 ? [] : [told(`${kind}: strikes`, found.length), told(`${kind}: p99 of calls`, p99, "ms")];
  };
  return [
    told("strikes", strikes.length),
    ...kinds.flatMap(during),
    told("calls", calls.length),
    told("calls_without_result", faults.length),
    told("calls_made_when_noticed", calls.filter((call) => strikes.some((strike) => isNoticed(call, strike))).length),
    told("slowest_call", Math.round(slowest), "ms"),
    ...[...rss].map(([instance, bytes]) => told(`${instance}: rss`, Math.round(bytes / 1024 ** 2), "MiB")),
    told("stood_still", Math.round(stalls.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0)), "ms"),
    { ...told("services_died", unaskedEnds.length), limit: 0 },
    { ...told("violations", violations.length), limit: 0 },
  ];
}

/** Of the calls that were under way during a strike of this kind. */
function p99Of(calls: readonly ClientCall[], strikes: readonly Strike[], kind: StrikeKind): number {
  const struck = strikes.filter((strike) => strike.kind === kind);
  const under = calls.filter((call) => struck.some(({ fromMs, toMs }) => call.toMs >= fromMs && call.fromMs <= toMs));
  const took = under.map(({ fromMs, toMs }) => toMs - fromMs).sort((one, other) => one - other);
  return Math.round(took[Math.floor(took.length * 0.99)] ?? 0);
}

function isNoticed({ fromMs }: ClientCall, strike: Strike): boolean {
  return fromMs >= strike.fromMs + NOTICED_AFTER_MS && fromMs <= strike.toMs;
}

async function tellViolations({ violations, history, lines }: OutageResult, seed: string): Promise<void> {
  if (violations.length === 0) return;
  for (const { rule, key, what } of violations.slice(0, TOLD)) console.error(`VIOLATION ${rule}: ${key}: ${what}`);
  const path = join(tmpdir(), `toolbus-faults-outage-seed-${seed}.json`);
  await writeFile(path, JSON.stringify({ violations, ...history, lines }, null, 2));
  console.error(`${violations.length} violations; all calls stand in ${path}, with what the services said`);
}

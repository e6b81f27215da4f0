import { faultCommand, listOf, Misuse } from "../command/command.ts";
import { named, number, word, words } from "../command/options.ts";
import { type Figure, reportFigures, reportViolations } from "../command/report.ts";
import { openTreeCopy } from "../processes/tree.ts";
import { NOTICED_AFTER_MS } from "./check.ts";
import type { ClientCall, Strike, StrikeKind } from "./history.ts";
import { type OutageResult, runOutages } from "./run.ts";
import { strikeMeanings } from "./strikes.ts";

const kinds = Object.keys(strikeMeanings) as StrikeKind[];

export const runOutageFaults = faultCommand({
  name: "outage",
  about: `Two tool-routers, worker-pools, mcp-bridges and orchestrators, and a broker, are struck while clients call tools of all kinds through a
gateway, each call once. What the clients see is judged, and how often each call happened.`,
  options: {
    seed: number("who is struck, how, and for how long", 1),
    strikes: number("how often", 10),
    only: words("STRIKE", "this one"),
    nodes: named("N", "of the broker, 1 or 3 (1)", { 1: 1, 3: 3 } as const),
    least: number("how long a strike lasts at least, in seconds", 5),
    most: number("how long at most", 20),
    broker: named("KIND", "quick: it drops who is silent after 3 s; slow: it does not notice (slow)", {
      slow: "slow",
      quick: "quick",
    }),
    revision: word("REV", "of the services, in place of the files as they are"),
  },
  more: `strikes:\n${listOf(strikeMeanings)}`,
  async run({ seed, strikes, only, nodes = 1, least, most, broker = "slow", revision, json }) {
    const wanted = kindsOf(only, nodes);
    await using tree = await openTreeCopy({ revision });
    const result = await runOutages({
      tree: tree.directory,
      seed,
      strikes,
      leastMs: least * 1_000,
      mostMs: most * 1_000,
      nodes,
      kinds: wanted,
      slowBroker: broker === "slow",
      onProgress: (line) => console.error(line),
    });
    const isKept = reportFigures("outage", figuresFrom(result), { json });
    const { violations, history, lines } = result;
    const told = violations.map(({ rule, key, what }) => `${rule}: ${key}: ${what}`);
    await reportViolations(`outage-seed-${seed}`, told, { violations, ...history, lines });
    return isKept;
  },
});

/** The disk is that of a single node, and nodes can be away where there are three. */
function kindsOf(only: readonly string[], nodes: 1 | 3): StrikeKind[] {
  const unknown = only.find((kind) => !kinds.includes(kind as StrikeKind));
  if (unknown !== undefined) throw new Misuse(`there is no strike ${unknown}`);
  const missing: StrikeKind[] = nodes === 3 ? ["disk"] : ["node", "nodes"];
  const wanted = kinds.filter((kind) => !missing.includes(kind) && (only.length === 0 || only.includes(kind)));
  if (wanted.length === 0) throw new Misuse(`with --nodes ${nodes}, none of these strikes can be made`);
  return wanted;
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
    { ...told("services_died", unaskedEnds.length), most: 0 },
    { ...told("violations", violations.length), most: 0 },
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

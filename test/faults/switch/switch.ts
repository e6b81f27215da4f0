import { parseArgs } from "node:util";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { type Growth, growthOf } from "./leftovers.ts";
import { runSwitches, type SwitchRunResult, sharedWatches, tellsOfMemory } from "./run.ts";

const HELP = `usage: npm run faults -- switch [options]

Sessions are switched from agent to agent while calls go on in them, with two routers and MCP servers over stdio. No call may
be lost without an error, none may reach another context, and nothing may be left: no process, connection, context or watch, no
consumer or key at the broker, and of memory less than a kilobyte a switch (told when 1250 were made or more, and no router killed).

  --agents N     agents, and as many sessions (50)
  --switches N   switches of each session (100)
  --mcp N        how many of the agents have an MCP server (5)
  --kills N      how often a router is killed meanwhile (0)
  --seed N       of all that is random (1)
  --json         one line of JSON for each figure
  --help         this text`;

interface Figure {
  metric: string;
  value: number;
  unit: string;
  /** What the value must not exceed; absent where it is only told. */
  limit?: number;
}

/** Gives the exit code: 1 when something was violated. */
export async function runSwitchFaults(args: string[]): Promise<number> {
  const values = parse(args);
  if (typeof values === "string") {
    console.error(`${values}\n${HELP}`);
    return 2;
  }
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const result = await runSwitches({
    agents: Number(values.agents),
    switches: Number(values.switches),
    mcpAgents: Number(values.mcp),
    kills: Number(values.kills),
    seed: Number(values.seed),
    onProgress: (line) => process.stderr.write(`${line}\n`),
  });
  const figures = figuresFrom(result);
  if (values.json) for (const figure of figures) console.log(JSON.stringify({ fault: "switch", ...figure }));
  else console.table(figures);
  for (const [kind, text] of result.tally.examples) process.stderr.write(`for example, ${kind}: ${text}\n`);
  for (const fault of [...result.tally.lost, ...result.tally.misled].slice(0, 20)) process.stderr.write(`${fault}\n`);
  return figures.some(({ value, limit }) => limit !== undefined && value > limit) ? 1 : 0;
}

const number = (byDefault: number) => ({ type: "string" as const, default: String(byDefault) });
const options = {
  agents: number(50),
  switches: number(100),
  mcp: number(5),
  kills: number(0),
  seed: number(1),
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

/** The options, or what is wrong with them. */
function parse(args: string[]) {
  try {
    const { values } = parseArgs({ args, options });
    const isNumber = (name: "agents" | "switches" | "mcp" | "kills" | "seed") => Number(values[name]) >= 0;
    const wrong = (["agents", "switches", "mcp", "kills", "seed"] as const).find((name) => !isNumber(name));
    return wrong === undefined ? values : `--${wrong} is a number`;
  } catch (error) {
    return messageFromUnknown(error);
  }
}

/** Growth of each service between the first fifth of the switches and the last of them. */
function growthFigures({ alive, switched, kills }: SwitchRunResult): Figure[] {
  const counted = Math.floor(switched * 0.8);
  const limit = (value: number) => (tellsOfMemory({ switched, kills }) ? { limit: value } : {});
  const services = Map.groupBy(growthOf(alive.early, alive.late), ({ instance }) => instance.replace(/-\d+$/, ""));
  return [...services].flatMap(([service, instances]) => {
    const total = (of: (one: Growth) => number) => instances.reduce((sum, one) => sum + of(one), 0);
    return [
      // a leak of a kilobyte in each switch would exceed it, on whichever router it is
      { metric: `heap_growth: ${service}`, value: total(({ kilobytes }) => kilobytes), unit: "KB", ...limit(counted) },
      { metric: `timers_growth: ${service}`, value: total(({ timers }) => timers), unit: "", ...limit(counted / 10) },
      {
        metric: `signals_growth: ${service}`,
        value: total(({ signals }) => signals),
        unit: "",
        ...limit(counted / 10),
      },
    ];
  });
}

/**
 * The broker keeps the consumers of a router that was killed for five minutes; also one that a client was about to make again
 * when it was to end, which happens when the machine is busy.
 */
function consumersLimit({ switched, kills }: SwitchRunResult): { limit?: number } {
  return kills > 0 ? {} : { limit: Math.floor(switched / 100) };
}

function leftFigures(metric: string, left: ReadonlyMap<string, number>, limit: { limit?: number }): Figure[] {
  const total = [...left.values()].reduce((sum, count) => sum + count, 0);
  const each = [...left].map(([name, value]) => ({ metric: `${metric}: ${name}`, value, unit: "" }));
  return [{ metric, value: total, unit: "", ...limit }, ...each];
}

function figuresFrom(result: SwitchRunResult): Figure[] {
  const { tally } = result;
  const errors = [...tally.errors].sort(([one], [other]) => (one < other ? -1 : 1));
  return [
    { metric: "switches", value: result.switched, unit: "" },
    { metric: "switches_not_made", value: result.notSwitched, unit: "" },
    { metric: "switch_p50", value: Math.round(result.medianSwitchMs), unit: "ms" },
    { metric: "switch_max", value: Math.round(result.slowestSwitchMs), unit: "ms" },
    { metric: "duration", value: Math.round(result.durationMs / 1_000), unit: "s" },
    { metric: "routers_killed", value: result.kills, unit: "" },
    { metric: "services_died", value: result.died, unit: "", limit: 0 },
    { metric: "calls_answered", value: tally.answered, unit: "" },
    ...errors.map(([kind, value]) => ({ metric: `told: ${kind}`, value, unit: "" })),
    { metric: "calls_lost", value: tally.lost.length, unit: "", limit: 0 },
    { metric: "calls_in_wrong_context", value: tally.misled.length, unit: "", limit: 0 },
    { metric: "server_processes_seen", value: result.processesSeen, unit: "" },
    { metric: "server_processes_left", value: result.processesLeft, unit: "", limit: 0 },
    { metric: "connections_left", value: result.connectionsLeft, unit: "", limit: 0 },
    { metric: "contexts_left", value: result.contextsLeft, unit: "", limit: 0 },
    { metric: "watches_left", value: result.watchesLeft, unit: "", limit: sharedWatches },
    ...leftFigures("consumers_left", result.consumersLeft, consumersLimit(result)),
    ...leftFigures("keys_left", result.keysLeft, { limit: 0 }),
    ...growthFigures(result),
  ];
}

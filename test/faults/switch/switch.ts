import { faultCommand } from "../command/command.ts";
import { number } from "../command/options.ts";
import { type Figure, reportFigures } from "../command/report.ts";
import { type Growth, growthOf } from "./leftovers.ts";
import { runSwitches, type SwitchRunResult, sharedWatches, tellsOfMemory } from "./run.ts";

export const runSwitchFaults = faultCommand({
  name: "switch",
  about: `Sessions are switched from agent to agent while calls go on in them, with two routers and MCP servers over stdio. No call may
be lost without an error, none may reach another context, and nothing may be left: no process, connection, context or watch, no
consumer or key at the broker, and of memory less than a kilobyte a switch (told when 1250 were made or more, and no router killed).`,
  options: {
    agents: number("agents, and as many sessions", 50),
    switches: number("switches of each session", 100),
    mcp: number("how many of the agents have an MCP server", 5),
    kills: number("how often a router is killed meanwhile", 0),
    seed: number("of all that is random", 1),
  },
  async run({ mcp, json, ...options }) {
    const result = await runSwitches({ ...options, mcpAgents: mcp, onProgress: (line) => console.error(line) });
    const isKept = reportFigures("switch", figuresFrom(result), { json });
    for (const [kind, text] of result.tally.examples) console.error(`for example, ${kind}: ${text}`);
    for (const fault of [...result.tally.lost, ...result.tally.misled].slice(0, 20)) console.error(fault);
    return isKept;
  },
});

/** Growth of each service between the first fifth of the switches and the last of them. */
function growthFigures({ alive, switched, kills }: SwitchRunResult): Figure[] {
  const counted = Math.floor(switched * 0.8);
  const limit = (value: number) => (tellsOfMemory({ switched, kills }) ? { most: value } : {});
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
function consumersLimit({ switched, kills }: SwitchRunResult): { most?: number } {
  return kills > 0 ? {} : { most: Math.floor(switched / 100) };
}

function leftFigures(metric: string, left: ReadonlyMap<string, number>, limit: { most?: number }): Figure[] {
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
    { metric: "services_died", value: result.died, unit: "", most: 0 },
    { metric: "calls_answered", value: tally.answered, unit: "" },
    ...errors.map(([kind, value]) => ({ metric: `told: ${kind}`, value, unit: "" })),
    { metric: "calls_lost", value: tally.lost.length, unit: "", most: 0 },
    { metric: "calls_in_wrong_context", value: tally.misled.length, unit: "", most: 0 },
    { metric: "server_processes_seen", value: result.processesSeen, unit: "" },
    { metric: "server_processes_left", value: result.processesLeft, unit: "", most: 0 },
    { metric: "connections_left", value: result.connectionsLeft, unit: "", most: 0 },
    { metric: "contexts_left", value: result.contextsLeft, unit: "", most: 0 },
    { metric: "watches_left", value: result.watchesLeft, unit: "", most: sharedWatches },
    ...leftFigures("consumers_left", result.consumersLeft, consumersLimit(result)),
    ...leftFigures("keys_left", result.keysLeft, { most: 0 }),
    ...growthFigures(result),
  ];
}

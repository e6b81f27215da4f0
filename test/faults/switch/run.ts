import { refuse } from "#runtime/failure/failure.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { createRandom, type Random } from "../random.ts";
import { retryRequest } from "../retry-request.ts";
import type { AliveByInstance } from "./alive.ts";
import { keptByBroker, leftAtBroker, objectsIn, serverProcesses } from "./leftovers.ts";
import { createTally, SessionLoad, type Tally } from "./session-load.ts";
import { openWorld, type World } from "./world.ts";

export interface SwitchRunOptions {
  readonly agents: number;
  /** Of each session. */
  readonly switches: number;
  /** How many of the agents have an MCP server. */
  readonly mcpAgents: number;
  /** How often a router is killed meanwhile. */
  readonly kills: number;
  readonly seed: number;
  readonly onProgress: (line: string) => void;
}

export interface SwitchRunResult {
  readonly durationMs: number;
  readonly switched: number;
  readonly notSwitched: number;
  readonly kills: number;
  /** Services that ended without having been killed here. */
  readonly died: number;
  readonly medianSwitchMs: number;
  readonly slowestSwitchMs: number;
  readonly tally: Tally;
  /** Server processes at their most, and after all sessions were closed. */
  readonly processesSeen: number;
  readonly processesLeft: number;
  readonly connectionsLeft: number;
  /** Of all sessions' contexts, on all routers, and of what follows their providers. */
  readonly contextsLeft: number;
  readonly watchesLeft: number;
  /** More than before the first session was opened. */
  readonly consumersLeft: ReadonlyMap<string, number>;
  readonly keysLeft: ReadonlyMap<string, number>;
  /** After a fifth of the switches, after all of them with their sessions open, and when those are closed. */
  readonly alive: { readonly early: AliveByInstance; readonly late: AliveByInstance; readonly closed: AliveByInstance };
}

/** Routers remember the last 4,096 calls that they had to do with: their memory says something when they have had as many. */
const WARMING_CALLS = 10_000;

/** While services start, a busy machine can cost one of them its link. */
const PATIENCE_MS = 20_000;

/** What spaces offers everybody alike each router follows once, and for a while longer than any session. */
export const sharedWatches = 2;

/** A few switches say nothing of memory, nor do routers that came since. */
export function tellsOfMemory({ switched, kills }: { switched: number; kills: number }): boolean {
  return switched >= 1_250 && kills === 0;
}

/** A session for each agent, all of them switched again and again while their calls go on; then all are closed. */
export async function runSwitches(options: SwitchRunOptions): Promise<SwitchRunResult> {
  await using world = await openWorld(options);
  const before = await keptByBroker(world);
  const random = createRandom(options.seed);
  const tally = createTally();
  const total = options.agents * options.switches;
  const loads: SessionLoad[] = [];
  for (const [index, agent] of world.agents.entries()) {
    const sessionId = `s-${index + 1}`;
    const { session } = await retryRequest(
      () => world.sessions.createSession({ sessionId, agent }),
      performance.now() + PATIENCE_MS,
    );
    loads.push(
      new SessionLoad(world, random, {
        tally,
        session: session ?? refuse("internal", "there is no session", { reason: "INTERNAL" }),
      }),
    );
  }
  const startedAt = performance.now();
  const durations: number[] = [];
  let notSwitched = 0;
  let [processesSeen, kills] = [0, 0];
  const watching = new AbortController();

  async function watch(): Promise<void> {
    while (!watching.signal.aborted) {
      processesSeen = Math.max(processesSeen, await serverProcesses(world));
      const failures = [...tally.errors.values()].reduce((sum, count) => sum + count, 0);
      options.onProgress(`${durations.length}/${total} switches, ${tally.answered} calls answered, ${failures} errors`);
      await delay(2_000, watching.signal).catch(() => {}); // the end of the switches
    }
  }
  /** So many switches of each session; gives what is alive when all is still again. */
  async function round(switches: number): Promise<AliveByInstance> {
    for (const load of loads) load.isDone = false;
    const calling = Promise.all(loads.flatMap((load) => [load.callUnbound(), load.callDecided()]));
    await Promise.all(loads.map((load) => switchAll(load, switches)));
    for (const load of loads) load.isDone = true;
    await calling;
    return world.probes.alive(world.suite.services);
  }
  async function bothRounds(): Promise<[early: AliveByInstance, late: AliveByInstance]> {
    const first = Math.ceil(options.switches / 5);
    return [await round(first), await round(options.switches - first)];
  }
  async function switchAll(load: SessionLoad, switches: number): Promise<void> {
    for (let count = 0; count < switches; count++) {
      const begunAt = performance.now();
      if ((await load.switch()) === "not switched") notSwitched += 1;
      durations.push(performance.now() - begunAt);
      await delay(random.next() * 400);
    }
  }
  async function killAll(): Promise<void> {
    for (; kills < options.kills; kills++) {
      await until(() => durations.length >= ((kills + 1) * total) / (options.kills + 1), { timeoutMs: 3_600_000 });
      await killRouter(world, random);
    }
  }

  const watched = watch();
  if (tellsOfMemory({ switched: total, kills: options.kills })) {
    await Promise.all(loads.map((load) => load.callOwn(Math.ceil(WARMING_CALLS / loads.length))));
  }
  const [[early, late]] = await Promise.all([bothRounds(), killAll()]);
  watching.abort();
  await watched;
  const durationMs = performance.now() - startedAt;
  for (const { sessionId } of loads)
    await retryRequest(() => world.sessions.closeSession({ sessionId }), performance.now() + PATIENCE_MS);
  await until(async () => (await serverProcesses(world)) === 0, { timeoutMs: 10_000, intervalMs: 200 }).catch(() => {}); // told by the count
  const closed = await world.probes.alive(world.suite.services);
  const left = await leftAtBroker(world, before, { forConsumers: kills === 0 });
  const sorted = durations.toSorted((one, other) => one - other);
  return {
    durationMs,
    switched: durations.length - notSwitched,
    notSwitched,
    kills,
    died: world.endings() - kills,
    medianSwitchMs: sorted[Math.floor(sorted.length / 2)] ?? 0,
    slowestSwitchMs: sorted.at(-1) ?? 0,
    tally,
    processesSeen,
    processesLeft: await serverProcesses(world),
    connectionsLeft: (await allPages((pageToken) => world.bridge.listConnections({ pageToken }))).flatMap(
      ({ connections }) => connections,
    ).length,
    contextsLeft: objectsIn(closed, "ScopeOffers"),
    watchesLeft: objectsIn(closed, "OfferWatch"),
    consumersLeft: left.consumers,
    keysLeft: left.keys,
    alive: { early, late, closed },
  };
}

/** One of those that run; the suite starts it again. */
async function killRouter({ suite }: World, random: Random): Promise<void> {
  const routers = suite.services.filter(({ service, pid }) => service === "tool-router" && pid !== undefined);
  const { pid } = random.pick(routers);
  if (pid !== undefined) process.kill(pid, "SIGKILL");
}

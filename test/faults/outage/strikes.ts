import { readFile } from "node:fs/promises";
import { delay } from "#runtime/time/delay.ts";
import type { Random } from "../random.ts";
import type { Strike, StrikeKind } from "./history.ts";
import type { Struck, World } from "./world.ts";

export const strikeMeanings: Readonly<Record<StrikeKind, string>> = {
  freeze: "SIGSTOP of one instance, and back",
  cut: "everything between one instance and the broker is held back, and comes late",
  break: "the connections of one instance to the broker are reset",
  stop: "SIGTERM of one instance, which starts again",
  clock: "the clock of one instance is 10 s before or behind the others",
  "silence of all": "SIGSTOP of all instances of one service, and back",
  large: "twelve calls with arguments of 60 MB at once",
  disk: "the broker's disk is full (one node)",
  node: "one of the broker's nodes is killed, and stays away (three nodes)",
  nodes: "two of the broker's nodes are killed (three nodes)",
};

export interface StrikeOptions {
  readonly random: Random;
  /** How long a strike lasts that does not end by itself. */
  readonly leastMs: number;
  readonly mostMs: number;
  /** The broker goes on believing in who is silent, as one with its own defaults does for minutes. */
  readonly slowBroker: boolean;
  /** Makes the large calls, and resolves when all have ended. */
  readonly callLarge: () => Promise<void>;
}

/** How long it may take until all is well: leaders are elected, streams looked at, the tools of a service listed again. */
const returnMs: Partial<Readonly<Record<StrikeKind, number>>> = {
  disk: 30_000,
  nodes: 30_000,
  "silence of all": 10_000,
};
const CLOCKS_APART_MS = 10_000;
/** An outage is told by `/healthz` within 15 s. */
const LEAST_OUTAGE_MS = 20_000;
/** Long enough to show that what is well does not wait for the node. */
const LEAST_NODE_MS = 40_000;
/** Longer than a call waits for its provider, and shorter than its time. */
const SILENCE_OF_ALL_MS = 12_000;

export async function strike(world: World, kind: StrikeKind, options: StrikeOptions): Promise<Strike> {
  const { random, leastMs, mostMs } = options;
  const victim = random.pick(world.struck);
  const lastsMs = leastMs + random.next() * (mostMs - leastMs);
  const fromMs = performance.now();
  const done = await blows[kind]({ world, victim, lastsMs, ...options });
  const endedAtMs = performance.now();
  const { instance = victim.service.instance, toMs = endedAtMs, ...more } = done ?? {};
  return { kind, instance, fromMs, toMs, wellAtMs: endedAtMs + (returnMs[kind] ?? 0), ...more };
}

interface Blow extends StrikeOptions {
  readonly world: World;
  readonly victim: Struck;
  readonly lastsMs: number;
}

type Done = Partial<Pick<Strike, "instance" | "toMs" | "rssBytes">> | undefined;

const blows: Readonly<Record<StrikeKind, (blow: Blow) => Promise<Done>>> = {
  freeze: (blow) => silence(blow, { freezes: true }),
  cut: (blow) => silence(blow, { freezes: false }),
  async break({ victim: { links } }) {
    for (const link of links) link.break();
    return undefined;
  },
  async stop({ victim: { service } }) {
    await service.stop();
    await service.ready();
    return undefined;
  },
  async clock({ victim: { service }, random, lastsMs }) {
    service.shiftClock(random.pick([CLOCKS_APART_MS, -CLOCKS_APART_MS]));
    await delay(lastsMs);
    service.shiftClock(0);
    return undefined;
  },
  async "silence of all"({ world, victim: { service } }) {
    const all = world.struck.filter((one) => one.service.service === service.service);
    for (const one of all) one.service.freeze();
    await delay(SILENCE_OF_ALL_MS);
    for (const one of all) one.service.thaw();
    return { instance: service.service };
  },
  async large({ world, callLarge }) {
    const over = new AbortController();
    const largest = largestRss(world, over.signal);
    await callLarge().finally(() => over.abort());
    return { instance: "all", rssBytes: await largest };
  },
  disk: (blow) => failBroker(blow, { nodes: 1, leastMs: LEAST_OUTAGE_MS }),
  node: (blow) => failBroker(blow, { nodes: 1, leastMs: LEAST_NODE_MS }),
  nodes: (blow) => failBroker(blow, { nodes: 2, leastMs: LEAST_OUTAGE_MS }),
};

async function silence({ victim: { service, links }, lastsMs, slowBroker }: Blow, { freezes }: { freezes: boolean }) {
  for (const link of links) link.fallSilent({ answersPings: slowBroker });
  if (freezes) service.freeze();
  await delay(lastsMs);
  for (const link of links) link.restore();
  if (freezes) service.thaw();
  return undefined;
}

async function failBroker({ world, lastsMs }: Blow, { nodes, leastMs }: { nodes: number; leastMs: number }) {
  const restore = await world.broker.fail(nodes);
  await delay(Math.max(lastsMs, leastMs));
  const toMs = performance.now(); // a node that comes back may have been killed for that
  await restore();
  return { instance: "broker", toMs };
}

/** The most that each of the services has had until the signal. */
async function largestRss({ services }: World, signal: AbortSignal): Promise<Record<string, number>> {
  const largest: Record<string, number> = {};
  for (; !signal.aborted; await delay(100)) {
    for (const { instance, pid } of services) largest[instance] = Math.max(largest[instance] ?? 0, await rssOf(pid));
  }
  return largest;
}

async function rssOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => ""); // it has just ended
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024;
}

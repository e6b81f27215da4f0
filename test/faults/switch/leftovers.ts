import { readFile } from "node:fs/promises";
import { readSubject } from "#runtime/bus/streams/read.ts";
import { delay } from "#runtime/time/delay.ts";
import { descendantsOf, stillRunning } from "../../harness/processes.ts";
import type { AliveByInstance } from "./alive.ts";
import type { World } from "./world.ts";

/** The MCP servers that the bridges have started and that run; their watchdog is none. */
export async function serverProcesses({ suite }: World): Promise<number> {
  const bridges = suite.services.filter(({ service }) => service === "mcp-bridge");
  const below = await Promise.all(bridges.map(({ pid }) => (pid === undefined ? [] : descendantsOf(pid))));
  const running = await stillRunning(below.flat());
  const commands = await Promise.all(running.map(commandOf));
  return commands.filter((command) => command.includes(SERVER) && !CONFINER.test(command)).length;
}

const SERVER = "whose-server";
/** Two processes of it are around each server. */
const CONFINER = /^[^\0]*bwrap\0/;

async function commandOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => ""); // it has ended meanwhile
}

/** What the broker keeps by stream: consumers, and keys of buckets. */
export interface Kept {
  readonly consumers: ReadonlyMap<string, number>;
  readonly keys: ReadonlyMap<string, number>;
}

/** These keep what was, for its time: closed sessions, and the records of calls. */
const LASTING = ["toolbus_sessions", "toolbus_calls"];

export async function keptByBroker({ bus }: World): Promise<Kept> {
  const [consumers, keys] = [new Map<string, number>(), new Map<string, number>()];
  for await (const { config, state } of bus.manager.streams.list()) {
    consumers.set(config.name, state.consumer_count);
    const [, bucket] = /^KV_(.+)$/.exec(config.name) ?? [];
    if (bucket !== undefined && !LASTING.includes(bucket)) keys.set(bucket, await keysOf(bus, bucket));
  }
  return { consumers, keys };
}

/** Without those that are removed, of which a mark stays for a minute. */
async function keysOf(bus: World["bus"], bucket: string): Promise<number> {
  const standing = new Set<string>();
  for await (const { subject, headers } of readSubject(bus, `$KV.${bucket}.>`)) {
    if (headers?.has("KV-Operation")) standing.delete(subject);
    else standing.add(subject);
  }
  return standing.size;
}

/**
 * What the broker keeps more than before, by name; what is on its way out is waited for. Consumers of a process that was killed
 * stay for minutes: then they are not waited for.
 */
export async function leftAtBroker(world: World, before: Kept, waits: { forConsumers: boolean }): Promise<Kept> {
  const endsAt = performance.now() + LEAVING_MS;
  for (;;) {
    const after = await keptByBroker(world);
    const left = {
      consumers: moreThan(before.consumers, after.consumers),
      keys: moreThan(before.keys, after.keys),
    };
    const leaving = left.keys.size + (waits.forConsumers ? left.consumers.size : 0);
    if (leaving === 0 || performance.now() >= endsAt) return left;
    await delay(500);
  }
}

const LEAVING_MS = 20_000;

function moreThan(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): Map<string, number> {
  const more = [...after].map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const);
  return new Map(more.filter(([, count]) => count > 0));
}

/** Objects of a class, of all services together. */
export function objectsIn(alive: AliveByInstance, name: string): number {
  return [...alive.values()].reduce((sum, { objects }) => sum + (objects[name] ?? 0), 0);
}

export interface Growth {
  readonly instance: string;
  readonly kilobytes: number;
  readonly timers: number;
  readonly signals: number;
}

/** How much more is alive in each service than before. */
export function growthOf(before: AliveByInstance, after: AliveByInstance): Growth[] {
  return [...after].map(([instance, late]) => {
    const early = before.get(instance) ?? late;
    return {
      instance,
      kilobytes: Math.round((late.heapBytes - early.heapBytes) / 1_024),
      timers: late.timers - early.timers,
      signals: (late.objects.AbortSignal ?? 0) - (early.objects.AbortSignal ?? 0),
    };
  });
}

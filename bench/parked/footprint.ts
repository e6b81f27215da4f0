import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { until } from "#runtime/time/until.ts";
import { residentBytesOf } from "../loop/figures/cpu.ts";
import type { World } from "../loop/world.ts";

/** What a service holds when its garbage is collected. */
export interface Holding {
  readonly residentBytes: number;
  readonly heapBytes: number;
}

/** What a world holds that is at rest. */
export interface Footprint {
  readonly services: ReadonlyMap<string, Holding>;
  readonly broker: { residentBytes: number; storedBytes: number; messages: number; consumers: number };
}

/** Looks at services that were started with `env`. */
export async function openFootprint(settleMs: number, onProgress: (message: string) => void) {
  const directory = await mkdtemp(join(tmpdir(), "bench-heaps-"));
  const collector = new URL("collect-garbage.ts", import.meta.url);
  collector.searchParams.set("directory", directory);
  return {
    env: { NODE_OPTIONS: `--import ${collector.href}` },
    async of(world: World): Promise<Footprint> {
      onProgress(`waiting until nothing moves, and ${settleMs / 1_000} s more`);
      await settled(world, settleMs);
      return { services: await holdings(world, directory), broker: await ofBroker(world) };
    },
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

/** Nothing waits in the queue of wake-ups, and what the services keep for a while is gone. */
async function settled({ bus }: World, settleMs: number): Promise<void> {
  await until(async () => (await bus.manager.streams.info("TOOLBUS_WAKES")).state.messages === 0, {
    timeoutMs: 120_000,
    what: "the queue of wake-ups to be empty",
  });
  await setTimeout(settleMs);
}

async function holdings({ suite, orchestrators }: World, directory: string): Promise<Map<string, Holding>> {
  const orchestrator = { service: "orchestrator", pid: orchestrators[0]?.pid };
  const found = new Map<string, Holding>();
  for (const { service, pid } of [...suite.services, orchestrator]) {
    if (pid !== undefined) found.set(service, await holdingOf(pid, join(directory, String(pid))));
  }
  return found;
}

/** One at a time: what one gives back, another does not take meanwhile. */
async function holdingOf(pid: number, path: string): Promise<Holding> {
  await rm(path, { force: true });
  process.kill(pid, "SIGUSR2");
  const read = () => readFile(path, "utf8").catch(() => ""); // it is written when its garbage is collected
  const heapBytes = Number(
    await until(read, { timeoutMs: 60_000, intervalMs: 50, what: `the heap of process ${pid}` }),
  );
  return { residentBytes: residentBytesOf(pid), heapBytes };
}

async function ofBroker({ bus, server }: World): Promise<Footprint["broker"]> {
  const broker = { residentBytes: residentBytesOf(server.pid), storedBytes: 0, messages: 0, consumers: 0 };
  for await (const { state } of bus.manager.streams.list()) {
    broker.storedBytes += state.bytes;
    broker.messages += state.messages;
    broker.consumers += state.consumer_count;
  }
  return broker;
}

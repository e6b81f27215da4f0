import { setTimeout as delay } from "node:timers/promises";
import { type Client, ConnectError } from "@connectrpc/connect";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { WorkerService } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { clientFor } from "../../../../services/clients.ts";
import { createRandom } from "../../random.ts";
import type { PoolWorld } from "../world.ts";
import { descriptorsOf, processesOf } from "./left.ts";

export interface CyclesOptions {
  readonly seed: number;
  readonly cycles: number;
  readonly onProgress: (line: string) => void;
}

export interface CyclesResult {
  /** How many there were of each kind. */
  readonly ends: ReadonlyMap<string, number>;
  readonly processesSeen: number;
  readonly processesLeft: number;
  /** More than after the first of its workers, in the pool that has most. */
  readonly descriptorsLeft: number;
  readonly brokerDescriptorsLeft: number;
  readonly durationMs: number;
}

const worker = [
  "the function exits",
  "the function kills",
  "killed from outside",
  "stopped",
  "stopped by force",
] as const;
const pool = ["the pool is killed", "the pool is killed in a call", "the pool is asked to end"] as const;
type End = (typeof worker)[number] | (typeof pool)[number];

/** A pool that is killed has many workers before. */
const POOL_SHARE = 0.15;
const GONE_MS = 20_000;

/** Starts a worker with children and ends it, or its pool, again and again. Nothing may be left of any of them. */
export async function runCycles(world: PoolWorld, { seed, cycles, onProgress }: CyclesOptions): Promise<CyclesResult> {
  const startedAt = performance.now();
  const random = createRandom(seed);
  const clients: Clients = {
    provider: clientFor(world.bus, ToolProviderService, { process: "worker-pool" }),
    workers: clientFor(world.bus, WorkerService),
  };
  const ends: End[] = [];
  const tally = { processesSeen: 0, processesLeft: 0, descriptorsLeft: 0 };
  let descriptors: number | undefined;
  await cycle(world, clients, "the pool is killed"); // the broker has seen each kind of client then
  const broker = await descriptorsOf(world.bus.server.pid);
  for (let index = 1; index <= cycles; index += 1) {
    const end = random.next() < POOL_SHARE ? random.pick(pool) : random.pick(worker);
    ends.push(end);
    const { seen, left } = await cycle(world, clients, end);
    tally.processesSeen += seen;
    tally.processesLeft += left;
    if (end.startsWith("the pool")) descriptors = undefined;
    else {
      descriptors ??= await descriptorsOf(pidOf(world));
      tally.descriptorsLeft = Math.max(tally.descriptorsLeft, await moreThan(descriptors, pidOf(world)));
    }
    if (index % 20 === 0) onProgress(`cycles: ${index} of ${cycles}, ${tally.processesLeft} processes left`);
  }
  return {
    ...tally,
    brokerDescriptorsLeft: await moreThan(broker, world.bus.server.pid),
    ends: new Map([...Map.groupBy(ends, (end) => end)].map(([end, of]) => [end, of.length])),
    durationMs: performance.now() - startedAt,
  };
}

interface Clients {
  readonly provider: Client<typeof ToolProviderService>;
  readonly workers: Client<typeof WorkerService>;
}

async function cycle(world: PoolWorld, clients: Clients, end: End): Promise<{ seen: number; left: number }> {
  await until(() => call(clients, "start"), { timeoutMs: 60_000 });
  const started = await processesOf(world.directory);
  await endBy(world, clients, end);
  const left = async () => {
    const now = new Set(await processesOf(world.directory));
    return started.filter((pid) => now.has(pid)).length;
  };
  await until(async () => (await left()) === 0, { timeoutMs: GONE_MS }).catch(() => {}); // told by its number
  return { seen: started.length, left: await left() };
}

async function endBy(world: PoolWorld, clients: Clients, end: End): Promise<void> {
  const { service } = world;
  if (end === "the pool is asked to end") return endPool(world, () => service.stop());
  if (end === "the pool is killed") return endPool(world, () => service.kill());
  if (end === "the pool is killed in a call") {
    const resting = call(clients, "rest");
    await until(async () => (await workersOf(clients))[0]?.callsInFlight === 1, { timeoutMs: GONE_MS });
    await endPool(world, () => service.kill());
    return void (await resting);
  }
  if (end === "the function exits") return void (await call(clients, "leave"));
  if (end === "the function kills") return void (await call(clients, "kill"));
  const [running] = await workersOf(clients);
  if (running === undefined) throw new Error("the pool lists no worker, although one has answered");
  if (end === "killed from outside") process.kill(running.processId, "SIGKILL");
  else await clients.workers.stopWorker({ workerId: running.id, force: end === "stopped by force" });
}

async function endPool({ service }: PoolWorld, end: () => Promise<void>): Promise<void> {
  await end();
  await service.ready();
}

async function workersOf({ workers }: Clients) {
  return (await workers.listWorkers({})).workers.filter(({ processId }) => processId > 0);
}

let lastCall = 0;

/** Whether it was answered. */
async function call({ provider }: Clients, tool: string): Promise<boolean> {
  const request = { callId: `cycle-${++lastCall}`, source: { name: "tool" }, tool, argumentsJson: "{}" };
  try {
    const events = await Array.fromAsync(provider.executeTool(request), ({ event }) => event.case);
    return events.includes("result");
  } catch (error) {
    ConnectError.from(error); // whatever the worker's end makes of a call; the storm judges that
    return false;
  }
}

function pidOf({ service }: PoolWorld): number {
  if (service.pid === undefined) throw new Error("the pool does not run");
  return service.pid;
}

/** How many more the process has in the end; what it is about to close is waited for. */
async function moreThan(before: number, pid: number): Promise<number> {
  let more = 0;
  for (const endsAt = performance.now() + GONE_MS; performance.now() < endsAt; await delay(100)) {
    more = (await descriptorsOf(pid)) - before;
    if (more <= 0) return 0;
  }
  return more;
}

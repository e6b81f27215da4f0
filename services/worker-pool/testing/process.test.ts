import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { WorkerService } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { isAlive } from "../../../test/harness/processes.ts";
import { programOf } from "../../../test/harness/programs.ts";
import { clientFor } from "../../clients.ts";
import { HEAD, uvCache } from "./workers.ts";

const TOOL = `${HEAD}
import os, subprocess, sys, time

def pids():
    child = subprocess.Popen(["sleep", "600"])
    return [os.getpid(), os.getppid(), child.pid]

def say():
    print("said by", os.getpid())

def nap(seconds: float):
    with open(sys.path[-1] + "/napping", "w") as file:
        file.write("x")
    time.sleep(seconds)
    return "rested"
`;

let bus: TestBus;
let directory: string;
const services: ChildProcess[] = [];

beforeAll(async () => {
  bus = await openTestBus();
  directory = await mkdtemp(join(tmpdir(), "toolbus-workers-"));
  await writeFile(join(directory, "tool.py"), TOOL);
});
afterAll(async () => {
  for (const service of services) service.kill("SIGKILL");
  await bus[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** The room as an operator starts it: a process of its own on a real bus. */
async function startService(environment: NodeJS.ProcessEnv = {}): Promise<ChildProcess> {
  const service = spawn(process.execPath, [programOf("services/worker-pool/main")], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: {
      ...process.env,
      NATS_URL: bus.server.url,
      TOOLBUS_BUS_CREDENTIALS: bus.server.credentials,
      TOOLBUS_WORKERS: directory,
      TOOLBUS_HOSTED: join(directory, "hosted"),
      TOOLBUS_LOG_LEVEL: "warn",
      UV_CACHE_DIR: uvCache,
      TOOLBUS_CONFINEMENT: "off", // inside of one, processes have other ids than those that this test looks at
      ...environment,
    },
  });
  services.push(service);
  const [message] = await once(service, "message");
  expect(message).toMatchObject({ kind: "ready" });
  return service;
}

let lastCall = 0;

async function call(tool: string, args: object = {}): Promise<unknown> {
  const provider = clientFor(bus, ToolProviderService, { process: "worker-pool" });
  const request = { callId: `call-${++lastCall}`, source: { name: "tool" }, tool, argumentsJson: JSON.stringify(args) };
  const events = await Array.fromAsync(provider.executeTool(request));
  const results = events.flatMap(({ event }) => (event.case === "result" ? [event.value.outputJson] : []));
  expect(results).toHaveLength(1);
  return JSON.parse(results[0] ?? "");
}

const stopped = async (service: ChildProcess, signal: NodeJS.Signals) => {
  const exit = once(service, "exit");
  service.kill(signal);
  return (await exit)[0];
};

test("WORK-9 SIGTERM finishes the calls in flight and leaves nothing behind", async () => {
  const service = await startService();
  const pids = (await call("pids")) as number[];
  expect(pids.every(isAlive)).toBe(true);
  const watched = Array.fromAsync(
    clientFor(bus, ToolProviderService, { process: "worker-pool" }).watchProvidedTools({}),
  );
  const resting = call("nap", { seconds: 1 });
  await until(async () => (await readFile(join(directory, "napping"), "utf8").catch(() => "")) === "x");
  expect(await stopped(service, "SIGTERM")).toBe(0);
  expect(await resting).toBe("rested");
  expect(await watched).toHaveLength(1);
  await until(() => !pids.some(isAlive));
}, 60_000);

test("WORK-9 SIGKILL of the service leaves neither workers nor their children; its calls end as unavailable", async () => {
  const service = await startService();
  const pids = (await call("pids")) as number[];
  const failure = call("nap", { seconds: 60 }).catch((error) => ConnectError.from(error).message);
  await until(async () => {
    const { workers } = await clientFor(bus, WorkerService).listWorkers({});
    return workers[0]?.callsInFlight === 1;
  });
  await stopped(service, "SIGKILL");
  await until(() => !pids.some(isAlive));
  expect(await failure).toMatch(/unavailable/);
}, 60_000);

test("BUS-2 two instances are one pool: calls go where the worker is warm, and elsewhere when that is full", async () => {
  const pair = await Promise.all([1, 2].map(() => startService({ TOOLBUS_WORKER_CALLS: "1" })));
  const service = clientFor(bus, WorkerService);
  const workerPid = async () => ((await call("pids")) as number[])[0] ?? 0;
  const workers = async () => (await service.listWorkers({})).workers;
  const first = await workerPid();
  for (let count = 0; count < 10; count += 1) expect(await workerPid()).toBe(first);
  expect((await workers()).map(({ processId }) => processId)).toEqual([first]);

  const lines: string[] = [];
  const watching = new AbortController();
  const watched = (async () => {
    for await (const { update } of service.watchWorkerLogs({}, { signal: watching.signal })) {
      if (update.case === "line") lines.push(update.value.log?.message ?? "");
    }
  })().catch(() => {}); // ended by the signal
  await rm(join(directory, "napping"), { force: true });
  const resting = call("nap", { seconds: 2 });
  await until(async () => (await readFile(join(directory, "napping"), "utf8").catch(() => "")) === "x");
  const second = await workerPid();
  expect(second).not.toBe(first);
  const both = await workers();
  expect(both.map(({ processId }) => processId).sort()).toEqual([first, second].sort());
  expect(new Set(both.map(({ instance }) => instance)).size).toBe(2);
  expect(await resting).toBe("rested");
  await until(async () => {
    await call("say");
    return lines.includes(`said by ${first}`) || lines.includes(`said by ${second}`);
  });
  watching.abort();
  await watched;

  for (const { id } of both) await service.stopWorker({ workerId: id });
  expect(await workers()).toEqual([]);
  const absent = await service.stopWorker({ workerId: both[0]?.id ?? "" }).catch((error) => ConnectError.from(error));
  expect(absent).toMatchObject({ message: expect.stringContaining("there is no worker") });

  await workerPid();
  await stopped(pair[0]!, "SIGKILL");
  const survivor = await until(() => workerPid().catch(() => 0));
  await until(async () => (await workerPid().catch(() => 0)) === survivor);
}, 60_000);

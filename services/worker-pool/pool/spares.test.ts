import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { WorkerState } from "#gen/toolbus/worker/v1/worker_pb.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { isAlive } from "../../../test/harness/processes.ts";
import { HEAD, openTestWorkers, type TestWorkers } from "../testing/workers.ts";

const TOOL = `${HEAD}
import os, time
VERSION = 1
with open(__file__ + ".starts", "a") as starts:
    starts.write("|")

def pid(value: int = 0):
    return [value, os.getpid(), VERSION]

def wait(name: str):
    while not os.path.exists(__file__ + "." + name):
        time.sleep(0.02)
    return os.getpid()

def crash():
    os._exit(3)
`;
/** Only one process of it can be. */
const ALONE = `${HEAD}
import fcntl, os
with open(__file__ + ".starts", "a") as starts:
    starts.write("|")
lock = open(__file__ + ".held", "w")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

def pid(value: int = 0):
    return [value, os.getpid()]

def crash():
    os._exit(3)
`;

const SPARE = { TOOLBUS_WORKER_SPARE: "true" };

async function pidOf({ call }: TestWorkers, name = "tool.pid"): Promise<number> {
  return ((await call(name)).result as number[])[1]!;
}

const startsOf = async ({ directory }: TestWorkers, file = "tool.py") =>
  (await readFile(join(directory, `${file}.starts`), "utf8")).length;

/** The processes in that state. */
async function pidsIn({ service }: TestWorkers, wanted: WorkerState): Promise<number[]> {
  const { workers } = await service.listWorkers({});
  return workers.filter(({ state }) => state === wanted).map(({ processId }) => processId);
}

/** The one spare, when it stands ready. */
async function spareOf(workers: TestWorkers): Promise<number> {
  return await until(async () => (await pidsIn(workers, WorkerState.SPARE))[0]);
}

test("WORK-10 a worker that has had its calls gets no further one: those that it has end, and the next meets a warm worker", async () => {
  await using workers = await openTestWorkers({ "tool.py": TOOL }, { TOOLBUS_WORKER_MAX_CALLS: "4" });
  const first = await pidOf(workers);
  const second = workers.call("tool.wait", { name: "go" });
  const spare = await spareOf(workers);
  expect([await pidOf(workers), await pidOf(workers)]).toEqual([first, first]);
  expect(await pidOf(workers)).toBe(spare);
  expect(await pidsIn(workers, WorkerState.STOPPING)).toEqual([first]);
  await workers.write("tool.py.go", "");
  expect((await second).result).toBe(first);
  await until(() => !isAlive(first));
  expect(await startsOf(workers)).toBe(2);
}, 60_000);

test("WORK-10 no call is lost, repeated or crossed where workers follow each other, nor does any get more than its calls", async () => {
  const environment = { TOOLBUS_WORKER_MAX_CALLS: "7", TOOLBUS_WORKER_MAX_LIFE: "1s", TOOLBUS_POOL_WORKERS: "3" };
  await using workers = await openTestWorkers({ "tool.py": TOOL }, environment);
  const values = Array.from({ length: 80 }, (_, value) => value);
  const called = await Promise.all(values.map((value) => workers.call("tool.pid", { value })));
  const answers = called.map(({ result }) => result as number[]);
  expect(answers.map(([value]) => value)).toEqual(values);
  const callsByPid = Map.groupBy(answers, ([, pid]) => pid);
  expect(Math.max(...callsByPid.values().map(({ length }) => length))).toBeLessThanOrEqual(7);
}, 60_000);

test("WORK-10 a worker that has had its time gets no further call, and ends after those that it has", async () => {
  await using workers = await openTestWorkers({ "tool.py": TOOL }, { TOOLBUS_WORKER_MAX_LIFE: "1500" });
  const running = workers.call("tool.wait", { name: "go" });
  await until(async () => (await pidsIn(workers, WorkerState.STOPPING)).length === 1);
  const second = await pidOf(workers);
  await workers.write("tool.py.go", "");
  expect((await running).result).not.toBe(second);
  await until(async () => (await workers.service.listWorkers({})).workers.length === 0);
}, 60_000);

test("WORK-10 a spare that is as old as the worker whose time is over takes its place for as long", async () => {
  await using workers = await openTestWorkers({ "tool.py": TOOL }, { ...SPARE, TOOLBUS_WORKER_MAX_LIFE: "4s" });
  const first = await pidOf(workers);
  const spare = await spareOf(workers);
  await until(() => !isAlive(first));
  const since = tickedMs();
  await until(() => !isAlive(spare));
  expect(tickedMs() - since).toBeGreaterThan(3_000);
}, 60_000);

test("WORK-8 a spare takes the place of a worker that crashed; after the third crash in a row both are backed off", async () => {
  await using workers = await openTestWorkers({ "tool.py": TOOL }, { ...SPARE, TOOLBUS_WORKER_BACKOFF: "1m" });
  await pidOf(workers);
  const spare = await spareOf(workers);
  await expect(workers.call("tool.crash")).rejects.toThrow("ended with");
  expect(await pidOf(workers)).toBe(spare);
  for (let count = 0; count < 3; count += 1) await expect(workers.call("tool.crash")).rejects.toThrow("ended with");
  await expect(pidOf(workers)).rejects.toThrow("it keeps failing");
  await until(async () => (await pidsIn(workers, WorkerState.STOPPING)).length === 0);
  const { workers: left } = await workers.service.listWorkers({});
  expect(left.map(({ state, processId }) => [state, processId])).toEqual([[WorkerState.BACKED_OFF, 0]]);
}, 60_000);

test("WORK-8 operators are told of a crash in the last calls of a worker", async () => {
  await using workers = await openTestWorkers({ "tool.py": TOOL }, { TOOLBUS_WORKER_MAX_CALLS: "1" });
  await expect(workers.call("tool.crash")).rejects.toThrow("ended with");
  await until(() => workers.warnings.some((text) => text.includes("ended with")));
}, 60_000);

test("WORK-8 a spare that cannot start is backed off by itself, and its worker goes on", async () => {
  await using workers = await openTestWorkers({ "alone.py": ALONE }, { ...SPARE, TOOLBUS_WORKER_BACKOFF: "1m" });
  const pid = await pidOf(workers, "alone.pid");
  await until(async () => (await pidOf(workers, "alone.pid")) === pid && (await startsOf(workers, "alone.py")) === 4);
  await until(async () => (await pidsIn(workers, WorkerState.BACKED_OFF)).length === 1);
  for (let count = 0; count < 20; count += 1) expect(await pidOf(workers, "alone.pid")).toBe(pid);
  expect(await startsOf(workers, "alone.py")).toBe(4);
  const listed = async () => (await workers.service.listWorkers({})).workers;
  const ofSpare = (await listed()).find(({ state }) => state === WorkerState.BACKED_OFF);
  await expect(workers.call("alone.crash")).rejects.toThrow("ended with");
  await pidOf(workers, "alone.pid"); // by a later start than the spare's
  await workers.service.stopWorker({ workerId: ofSpare?.id ?? "" });
  expect((await listed()).some(({ id }) => id === ofSpare?.id)).toBe(false);
}, 60_000);

test("WORK-10 a spare makes room for another file's worker, and takes none that is not there", async () => {
  const environment = { ...SPARE, TOOLBUS_WORKER_MAX_CALLS: "3", TOOLBUS_POOL_WORKERS: "2" };
  await using workers = await openTestWorkers({ "tool.py": TOOL, "other.py": TOOL }, environment);
  const pid = await pidOf(workers);
  const spare = await spareOf(workers);
  const other = await pidOf(workers, "other.pid");
  expect([await pidOf(workers), isAlive(spare)]).toEqual([pid, false]);
  const running = workers.call("other.wait", { name: "go" });
  await pidOf(workers); // its last, and there is no room for the next one but its own
  expect(await pidOf(workers)).not.toBe(pid);
  await workers.write("other.py.go", "");
  expect((await running).result).toBe(other);
}, 60_000);

test("WORK-10 a call waits for a worker that has had its calls and ends, where the pool is full and refuses", async () => {
  const environment = { TOOLBUS_POOL_OVERFLOW: "refuse", TOOLBUS_POOL_WORKERS: "1", TOOLBUS_WORKER_MAX_CALLS: "1" };
  await using workers = await openTestWorkers({ "tool.py": TOOL }, environment);
  expect(new Set([await pidOf(workers), await pidOf(workers), await pidOf(workers)]).size).toBe(3);
}, 60_000);

test("WORK-3 a spare ends with its idle worker, and with the version of its file", async () => {
  await using workers = await openTestWorkers({ "tool.py": TOOL }, { ...SPARE, TOOLBUS_WORKER_IDLE: "3s" });
  await pidOf(workers);
  const spare = await spareOf(workers);
  await workers.write("tool.py", TOOL.replace("VERSION = 1", "VERSION = 2"));
  await until(async () => ((await workers.call("tool.pid")).result as number[])[2] === 2);
  await until(() => !isAlive(spare));
  const [pid = 0] = await pidsIn(workers, WorkerState.READY);
  await spareOf(workers);
  await until(() => !isAlive(pid));
  expect(await pidsIn(workers, WorkerState.READY)).toEqual([]);
  await until(async () => (await workers.service.listWorkers({})).workers.length === 0);
}, 60_000);

import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { type Worker, WorkerState } from "#gen/toolbus/worker/v1/worker_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { isAlive } from "../../../test/harness/processes.ts";
import { HEAD, openTestWorkers, type TestWorkers } from "./workers.ts";

const TOOL = `${HEAD}
import os, signal, subprocess, sys, time

def pid():
    return os.getpid()

def nap(seconds: float):
    time.sleep(seconds)
    return os.getpid()

def crash(how: str = "exit"):
    print("last words", file=sys.stderr)
    if how == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(60)
    os._exit(3)

def parent():
    return os.getppid()

def crash_with_stderr_open():
    holder = subprocess.Popen(["env", "-i", "setsid", "sleep", "1"])
    while os.getsid(holder.pid) != holder.pid:
        time.sleep(0.01)
    os._exit(3)

def spin():
    while True:
        pass

def allocate(count: int):
    return len(bytearray(count))

def start_child():
    return subprocess.Popen(["sleep", "600"]).pid
`;

const processOf = async (workers: TestWorkers, name = "tool.pid") => (await workers.call(name)).result as number;

async function workersOf({ service }: TestWorkers, state?: WorkerState): Promise<Worker[]> {
  const { workers } = await service.listWorkers({});
  return state === undefined ? workers : workers.filter((worker) => worker.state === state);
}

async function failureOf(call: Promise<unknown>) {
  return call.then(
    () => expect.fail("the call succeeded"),
    (error) => failureFromConnectError(ConnectError.from(error)),
  );
}

describe("idle", () => {
  test("WORK-3 an idle worker ends; each call resets the time, and a call in flight is never idle", async () => {
    await using workers = await openTestWorkers({ "tool.py": TOOL }, { TOOLBUS_WORKER_IDLE: "400" });
    const pid = await processOf(workers);
    expect((await workers.call("tool.nap", { seconds: 0.9 })).result).toBe(pid);
    for (let count = 0; count < 4; count += 1) {
      expect((await workers.call("tool.nap", { seconds: 0.15 })).result).toBe(pid);
    }
    await until(async () => (await workersOf(workers)).length === 0);
    expect(isAlive(pid)).toBe(false);
    expect(await processOf(workers)).not.toBe(pid);
  }, 60_000);
});

describe("workers that nobody uses", () => {
  test("WORK-3 a worker ends in its time also when the last call on it was refused for its arguments", async () => {
    const environment = { TOOLBUS_WORKER_IDLE: "400", TOOLBUS_WORKER_MAX_LINE_BYTES: "65536" };
    await using workers = await openTestWorkers({ "tool.py": TOOL }, environment);
    const pid = await processOf(workers);
    const failure = await failureOf(workers.call("tool.pid", { text: "x".repeat(70_000) }));
    expect(failure.reason).toBe("MESSAGE_TOO_LARGE");
    await until(() => !isAlive(pid));
  }, 60_000);

  test("WORK-10 a worker whose caller left while it started makes room for one that is waited for", async () => {
    const slow = `${HEAD}
import os, time
while not os.path.exists(__file__ + ".go"):
    time.sleep(0.02)
def f(): return 1
`;
    const environment = { TOOLBUS_POOL_WORKERS: "1" };
    await using workers = await openTestWorkers({ "slow.py": slow, "tool.py": TOOL }, environment);
    const leaving = new AbortController();
    const left = failureOf(workers.call("slow.f", {}, { options: { signal: leaving.signal } }));
    await until(async () => (await workersOf(workers, WorkerState.STARTING)).length === 1);
    const waiting = processOf(workers);
    await until(async () => (await workersOf(workers, WorkerState.STARTING)).length === 2);
    leaving.abort();
    await left;
    await workers.write("slow.py.go", "");
    expect(isAlive(await waiting)).toBe(true);
  }, 60_000);
});

describe("crashes", () => {
  test("WORK-8 a crash fails the calls at once, with the tail of stderr; the next call starts another worker", async () => {
    await using workers = await openTestWorkers({ "tool.py": TOOL });
    const pid = await processOf(workers);
    const other = failureOf(workers.call("tool.nap", { seconds: 30 }));
    for (const [how, words] of [
      ["exit", /ended with code 3: .*last words/s],
      ["signal", /ended with SIGSEGV: .*last words/s],
    ] as const) {
      const failure = await failureOf(workers.call("tool.crash", { how }));
      expect(failure).toMatchObject({ code: "unavailable", reason: "WORKER_CRASHED" });
      expect(failure.message).toMatch(words);
      expect(await processOf(workers)).not.toBe(pid);
    }
    expect((await other).reason).toBe("WORKER_CRASHED");
  }, 60_000);

  test("WORK-8 a call that comes before the end of a crashed worker is told runs on the next one", async () => {
    await using workers = await openTestWorkers({ "tool.py": TOOL });
    const parent = (await workers.call("tool.parent")).result as number;
    const crashed = failureOf(workers.call("tool.crash_with_stderr_open"));
    await until(() => !isAlive(parent));
    expect((await workers.call("tool.parent")).result).not.toBe(parent);
    expect(await crashed).toMatchObject({ code: "unavailable", reason: "WORKER_CRASHED" });
  }, 60_000);

  test("WORK-8 a worker that keeps crashing is backed off with the reason kept, and comes back", async () => {
    const environment = { TOOLBUS_WORKER_BACKOFF: "1500", TOOLBUS_WORKER_MAX_BACKOFF: "1500" };
    await using workers = await openTestWorkers({ "tool.py": TOOL }, environment);
    for (let count = 0; count < 3; count += 1) {
      expect((await failureOf(workers.call("tool.crash"))).reason).toBe("WORKER_CRASHED");
    }
    const failure = await failureOf(workers.call("tool.pid"));
    expect(failure.reason).toBe("WORKER_BACKED_OFF");
    expect(failure.message).toMatch(/started again in \d+ ms; last: .*ended with code 3/);
    expect(await workersOf(workers)).toMatchObject([{ state: WorkerState.BACKED_OFF, processId: 0 }]);
    const pid = await until(() => processOf(workers).catch(() => 0));
    expect(isAlive(pid)).toBe(true);
  }, 60_000);

  test("WORK-8 a file that cannot be imported, or whose dependencies do not exist, says so, and its operators where", async () => {
    await using workers = await openTestWorkers({
      "broken.py": `${HEAD}import nothing_of_that_name\ndef f(): ...\n`,
      "missing.py": '# /// script\n# requires-python = ">=3.99"\n# ///\ndef f(): ...\n',
    });
    const broken = await failureOf(workers.call("broken.f"));
    expect(broken).toMatchObject({ code: "failed_precondition", reason: "WORKER_START_FAILED" });
    expect(broken.message).toMatch(/ModuleNotFoundError: No module named 'nothing_of_that_name'$/);
    expect(workers.warnings.join()).toContain('broken.py", line 4, in <module>');
    const missing = await failureOf(workers.call("missing.f"));
    expect(missing).toMatchObject({ code: "failed_precondition", reason: "WORKER_INSTALL_FAILED" });
    expect(missing.message).toContain("3.99");
  }, 60_000);
});

describe("bounds", () => {
  test("WORK-10 beyond its bound a call waits in line", async () => {
    await using workers = await openTestWorkers({ "tool.py": TOOL }, { TOOLBUS_WORKER_CALLS: "2" });
    await processOf(workers);
    const calls = Array.from({ length: 6 }, () => workers.call("tool.nap", { seconds: 0.1 }));
    await until(async () => (await workersOf(workers))[0]?.callsInFlight === 2);
    expect(await Promise.all(calls)).toHaveLength(6);
  }, 60_000);

  test("WORK-10 or is refused as resource_exhausted, as configured; for worker, pool and number of workers", async () => {
    for (const [variable, limit] of [
      ["TOOLBUS_WORKER_CALLS", "1"],
      ["TOOLBUS_POOL_CALLS", "1"],
      ["TOOLBUS_POOL_WORKERS", "1"],
    ] as const) {
      const environment = { [variable]: limit, TOOLBUS_POOL_OVERFLOW: "refuse" };
      await using workers = await openTestWorkers({ "tool.py": TOOL, "other.py": TOOL }, environment);
      await processOf(workers);
      const taken = workers.call("tool.nap", { seconds: 1 });
      await until(async () => (await workersOf(workers))[0]?.callsInFlight === 1);
      const name = variable === "TOOLBUS_POOL_WORKERS" ? "other.pid" : "tool.pid";
      expect(await failureOf(workers.call(name))).toMatchObject({
        code: "resource_exhausted",
        reason: "WORKER_POOL_FULL",
      });
      await taken;
      expect(await processOf(workers, name)).toBeGreaterThan(0);
    }
  }, 60_000);

  test("WORK-10 a caller in line leaves it when its time is over, and takes no place with it", async () => {
    await using workers = await openTestWorkers({ "tool.py": TOOL }, { TOOLBUS_WORKER_CALLS: "1" });
    await processOf(workers);
    const taken = workers.call("tool.nap", { seconds: 0.6 });
    await until(async () => (await workersOf(workers))[0]?.callsInFlight === 1);
    const late = await failureOf(workers.call("tool.pid", {}, { timeoutMs: 100 }));
    expect(late).toMatchObject({ code: "deadline_exceeded", reason: "CALL_NOT_STARTED" });
    expect(
      (await failureOf(taken.then(() => workers.call("tool.nap", { seconds: 5 }, { timeoutMs: 100 })))).reason,
    ).toBe("DEADLINE_EXCEEDED");
    await taken;
    expect(await processOf(workers)).toBeGreaterThan(0);
  }, 60_000);

  test("WORK-10 an idle worker makes room for another", async () => {
    await using workers = await openTestWorkers({ "tool.py": TOOL, "other.py": TOOL }, { TOOLBUS_POOL_WORKERS: "1" });
    const pid = await processOf(workers);
    const other = workers.call("other.nap", { seconds: 0.5 });
    await until(() => !isAlive(pid));
    const again = processOf(workers);
    expect((await other).isError).toBe(false);
    expect(await again).not.toBe(pid);
  }, 60_000);

  test("WORK-10 a worker's memory is limited: the call over it fails alone", async () => {
    const limit = String(512 * 2 ** 20);
    await using workers = await openTestWorkers({ "tool.py": TOOL }, { TOOLBUS_WORKER_MEMORY_BYTES: limit });
    const pid = await processOf(workers);
    expect((await workers.call("tool.allocate", { count: 2 ** 30 })).result).toEqual({ error: "MemoryError" });
    expect(await processOf(workers)).toBe(pid);
  }, 60_000);

  test("WORK-10 a worker's processor time is limited: one that uses it up ends, and the next call starts another", async () => {
    await using workers = await openTestWorkers({ "tool.py": TOOL }, { TOOLBUS_WORKER_PROCESSOR_SECONDS: "2" });
    const pid = await processOf(workers);
    const failure = await failureOf(workers.call("tool.spin"));
    expect(failure).toMatchObject({ code: "unavailable", reason: "WORKER_CRASHED" });
    expect(failure.message).toMatch(/SIGXCPU|SIGKILL/);
    expect(await processOf(workers)).not.toBe(pid);
  }, 60_000);

  test("arguments over the limit are refused before they reach the worker", async () => {
    await using workers = await openTestWorkers({ "tool.py": TOOL }, { TOOLBUS_WORKER_MAX_LINE_BYTES: "65536" });
    const failure = await failureOf(workers.call("tool.pid", { text: "x".repeat(70_000) }));
    expect(failure).toMatchObject({ code: "resource_exhausted", reason: "MESSAGE_TOO_LARGE" });
    expect(await processOf(workers)).toBeGreaterThan(0);
  }, 60_000);
});

describe("ends", () => {
  test("WORK-7 a function that cannot be canceled has its worker replaced; the other calls on it are finished first", async () => {
    await using workers = await openTestWorkers({ "tool.py": TOOL });
    const pid = await processOf(workers);
    const other = workers.call("tool.nap", { seconds: 2.5 });
    const stuck = failureOf(workers.call("tool.nap", { seconds: 60 }, { timeoutMs: 1_000 }));
    expect((await stuck).code).toBe("deadline_exceeded");
    await until(
      async () => (await workersOf(workers, WorkerState.STOPPING)).length > 0 || (await processOf(workers)) !== pid,
    );
    expect(await processOf(workers)).not.toBe(pid);
    expect((await other).result).toBe(pid);
    await until(() => !isAlive(pid));
  }, 60_000);

  test("WORK-9 a worker that is stopped takes its children with it; force fails its calls at once", async () => {
    await using workers = await openTestWorkers({ "tool.py": TOOL });
    const pid = await processOf(workers);
    const idOfWorker = async () => (await workersOf(workers))[0]?.id ?? "";
    const child = (await workers.call("tool.start_child")).result as number;
    const taken = workers.call("tool.nap", { seconds: 0.5 });
    await until(async () => (await workersOf(workers))[0]?.callsInFlight === 1);
    const workerId = await idOfWorker();
    await workers.service.stopWorker({ workerId });
    expect((await taken).result).toBe(pid);
    await until(() => !isAlive(pid) && !isAlive(child));

    const second = await processOf(workers);
    const failed = failureOf(workers.call("tool.nap", { seconds: 30 }));
    await until(async () => (await workersOf(workers))[0]?.callsInFlight === 1);
    expect((await failureOf(workers.service.stopWorker({ workerId, force: true }))).code).toBe("not_found"); // the one before
    const last = await idOfWorker();
    await workers.service.stopWorker({ workerId: last, force: true });
    expect((await failed).message).toContain("the worker of tool was stopped");
    await until(() => !isAlive(second));
    const unknown = await workers.service.stopWorker({ workerId: last }).catch((error) => ConnectError.from(error));
    expect(unknown).toMatchObject({ code: Code.NotFound });
  }, 60_000);
});

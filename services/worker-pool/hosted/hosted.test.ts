import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { Effect, ExecutionType, LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { WorkerState } from "#gen/toolbus/worker/v1/worker_pb.ts";
import { WorkerService } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { auditOf } from "../../../test/harness/bus.ts";
import { clientFor } from "../../clients.ts";
import { type CallInput, openPoolOnBus, type PoolOnBus } from "../testing/pool-on-bus.ts";

/** Processes start slowly on a machine that does much else. */
vi.setConfig({ testTimeout: 60_000 });

const GOOD = `
import { existsSync, writeSync } from "node:fs";
type Options = { a: number };
let initialized = 0;
const add = {
  name: "add",
  description: "Adds",
  inputSchema: { type: "object", properties: { a: { type: "number" } } },
  outputSchema: { type: "number" },
  effect: "pure",
  timeoutMs: 12_000,
  run: ({ a, b = 0 }: Options & { b?: number }) => a + b,
};
export default {
  initialize({ log }: { log: { info(text: string): void } }) { initialized += 1; log.info("begins"); },
  shutdown() { console.log("ends"); },
  tools: [
    add,
    { name: "given", run: (args: object, { config, secrets, callId }: any) => ({ args, config, secrets, callId, initialized }) },
    { name: "environment", run: () => ({ ...process.env }) },
    { name: "fails", run() { throw new TypeError("bad " + "hush-hush"); } },
    { name: "rejects", run: async () => { throw "a plain text"; } },
    { name: "no_json", run: () => 1n },
    { name: "no_json_either", run: () => () => 1 },
    { name: "because", run() { throw Object.assign(new TypeError("fetch failed", { cause: new Error("nobody is there") }), { headers: "a token" }); } },
    { name: "circle", run() { const one: any = {}; one.one = one; return one; } },
    { name: "nothing", run() {} },
    { name: "fault", run() { setTimeout(() => { throw new Error("nobody catches me"); }, 5); return new Promise(() => {}); } },
    { name: "leaves", run() { process.exit(3); } },
    { name: "forever", run() { for (;;); } },
    { name: "deaf", run: () => new Promise(() => {}) },
    { name: "lasts", run: ({ path }: { path: string }) => new Promise((resolve) => {
        const timer = setInterval(() => { if (existsSync(path)) { clearInterval(timer); resolve("whole"); } }, 20); }) },
    { name: "divides", run: (_: object, { progress }: any) => { progress(0 / 0, 0); return "told"; } },
    { name: "asks_oddly", run: (_: object, { registry }: any) => registry.call(undefined) },
    { name: "asks_badly", run: (_: object, { registry }: any) => registry.call("look", "no object") },
    { name: "asks_much", run: (_: object, { registry }: any) => registry.call("look", { all: Array(2_100_000).fill([]) }) },
    { name: "blocks", run: ({ ms }: { ms: number }) => { const end = Date.now() + ms; while (Date.now() < end); return "done"; } },
    { name: "catches", run() { process.once("uncaughtException", () => {}); setTimeout(() => { throw new Error("caught"); });
        return new Promise((resolve) => setTimeout(resolve, 50, "went on")); } },
    { name: "logs_oddly", run: (_: object, { log }: any) => { log.info("one", () => {}); return "told"; } },
    { name: "lists", run: () => Array(2_100_000).fill([]) },
    { name: "throws_oddly", run: () => { throw Object.create(null); } },
    { name: "slow", run: (_: object, { signal }: any) => new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => { console.log("heard", signal.reason.message); reject(signal.reason); }); }) },
    { name: "lies", run() {
        const write = (id: number) => writeSync(4, JSON.stringify({ id, result: null, error: null }) + "\\n");
        for (let id = 0; id < 50; id++) write(id);
        return new Promise(() => {}); } },
    { name: "says_it_ends", run() { writeSync(4, JSON.stringify({ fatal: "as I say" }) + "\\n"); return new Promise(() => {}); } },
    { name: "fills", run() { const all = []; for (;;) all.push(new Array(1e6).fill(Math.random())); } },
    { name: "tells", run(_: object, { log, progress }: any) {
        log.info("one", { n: 1 }); progress(1, 2, "half"); console.log("printed hush-hush"); log.warn("two"); return "told"; } },
  ],
};
`;

let pool: PoolOnBus;
let hosted: string;

beforeAll(async () => {
  pool = await openPoolOnBus((directory) => ({
    TOOLBUS_SECRET_KEY: "hush-hush",
    TOOLBUS_SECRET_OTHER: "other!",
    TOOLBUS_WORKER_CANCEL_GRACE: "300",
    TOOLBUS_HOSTED_MEMORY_BYTES: String(64 * 2 ** 20),
    TOOLBUS_WORKER_START_TIMEOUT: "4s",
    TOOLBUS_WORKER_BACKOFF: "1ms",
    TOOLBUS_WORKER_MAX_BACKOFF: "1ms",
    TOOLBUS_HOSTED: join(directory, "hosted"),
  }));
  hosted = join(pool.directory, "hosted");
  await write("good.ts", GOOD);
  await offered("good", true);
});
afterAll(() => pool[Symbol.asyncDispose]());

const write = (name: string, text: string) => writeFile(join(hosted, name), text);

const status = async (source: string) =>
  (await pool.provider.getProvidedTools({})).sources.find((one) => one.source === source);

const offered = (source: string, isAvailable: boolean) =>
  until(async () => (await status(source))?.available === isAvailable, {
    timeoutMs: 20_000,
    what: `${source} to be ${isAvailable ? "offered" : "refused"}`,
  });

const call = (tool: string, args: object = {}, more: Partial<CallInput> = {}, signal?: AbortSignal) =>
  pool.call({ source: { name: "good" }, tool, args, ...more }, signal);

const failureOf = (called: Promise<unknown>) =>
  called.then(
    () => expect.fail("the call succeeded"),
    (error: unknown) => ConnectError.from(error),
  );

describe("a hosted module", () => {
  test("WORK-12 its tools are offered as they describe themselves, and called like any other", async () => {
    const { tools } = await pool.provider.getProvidedTools({});
    const add = tools.find(({ source, tool }) => source === "good" && tool?.name === "add")?.tool;
    expect(add).toMatchObject({
      description: "Adds",
      executionType: ExecutionType.HOSTED,
      effect: Effect.PURE,
      timeout: durationFromMs(12_000),
      outputSchemaJson: '{"type":"number"}',
    });
    expect((await call("add", { a: 1, b: 2 })).value).toBe(3);
    expect((await call("nothing")).value).toBe(null);
    expect((await failureOf(call("absent"))).code).toBe(Code.NotFound);
    const { workers } = await clientFor(pool.bus, WorkerService).listWorkers({});
    expect(workers.find(({ file }) => file === "good.ts")).toMatchObject({
      state: WorkerState.READY,
      processId: expect.any(Number),
    });
  });

  test("WORK-12 LOOP-9 one that is stopped finishes its calls, or fails them when forced, and shuts down; the next call starts it again", async () => {
    const { stopWorker, listWorkers } = clientFor(pool.bus, WorkerService);
    const isInFlight = async () => {
      const { workers } = await listWorkers({});
      return workers.find(({ file }) => file === "stopped.ts")?.callsInFlight === 1;
    };
    const ended = join(pool.directory, "ended");
    const text = `import { appendFileSync } from "node:fs";
      let n = 0; export default { shutdown() { appendFileSync(${JSON.stringify(ended)}, "x"); }, tools: [
      { name: "waits", run: () => new Promise(() => {}) },
      { name: "naps", run: () => new Promise((resolve) => setTimeout(resolve, 1_000, "slept")) },
      { name: "counts", run: () => ++n } ] };`;
    await write("stopped.ts", text);
    await offered("stopped", true);
    const of = (tool: string) => call(tool, {}, { source: { name: "stopped" } });
    expect((await of("counts")).value).toBe(1);
    const idOfStopped = async () => (await listWorkers({})).workers.find(({ file }) => file === "stopped.ts")?.id ?? "";
    const napping = of("naps");
    await until(isInFlight);
    await stopWorker({ workerId: await idOfStopped() });
    expect((await of("counts")).value).toBe(1); // of another process
    expect((await napping).value).toBe("slept");
    const failed = failureOf(of("waits"));
    await until(isInFlight);
    const workerId = await idOfStopped();
    await stopWorker({ workerId, force: true });
    expect((await failed).message).toContain("was stopped");
    expect((await of("counts")).value).toBe(1);
    expect((await failureOf(stopWorker({ workerId }))).code).toBe(Code.NotFound);
    const audited = await until(async () => {
      const events = await auditOf(pool.bus, AuditKind.STOPPED);
      return events.length === 2 && events;
    });
    expect(audited[0]).toMatchObject({ service: "worker-pool", principal: "local" });
    expect(audited[0]?.message).toBe(`worker ${workerId} was stopped in its calls by local`);
    expect(await readFile(ended, "utf8"), "when loaded, when stopped, and by force").toBe("xxx");
    expect((await status("stopped"))?.available).toBe(true);
  });

  test("LOOP-9 the registry knows it by its bare name, which is how the catalogue's tools call it", async () => {
    const called = await pool.call({ tool: "given", args: { x: 1 }, config: { region: "eu" }, callId: "bare" });
    expect(called.value).toEqual({
      args: { x: 1 },
      config: { region: "eu" },
      secrets: {},
      callId: "bare",
      initialized: 1,
    });
    expect((await failureOf(pool.call({ tool: "unheard_of" }))).code).toBe(Code.NotFound);
  });

  test("WORK-4 it is given the config and the secrets of its source's entry and no others; none is in its environment", async () => {
    const source = { name: "mine", config: { file: "good.ts", secrets: ["KEY"], config: { region: "eu" } } };
    expect((await call("given", {}, { source })).value).toMatchObject({
      config: { region: "eu" },
      secrets: { KEY: "hush-hush" },
    });
    expect((await call("given")).value).toMatchObject({ secrets: {} });
    expect(JSON.stringify((await call("environment")).value)).not.toMatch(/hush-hush|other!|TOOLBUS(?!_CHILD)|NATS/);
    const missing = { name: "mine", config: { file: "good.ts", secrets: ["ABSENT"] } };
    expect((await failureOf(call("given", {}, { source: missing }))).rawMessage).toContain("TOOLBUS_SECRET_ABSENT");
    const listed = await pool.provider.getProvidedTools({ sources: [source, missing, { name: "nowhere" }] });
    expect(listed.sources.map(({ available }) => available)).toEqual([true, false, false]);
  });

  test("WORK-6 logs, prints and progress come before the result, without secrets", async () => {
    const logs = clientFor(pool.bus, WorkerService);
    const seen: string[] = [];
    const leaving = new AbortController();
    const watching = (async () => {
      for await (const { update } of logs.watchWorkerLogs({ source: "good" }, { signal: leaving.signal }))
        if (update.case === "line") seen.push(update.value.log?.message ?? "");
    })().catch(() => {}); // left below
    await until(async () => (await call("add", { a: 1 })) && (await call("tells")) && seen.includes("one"), {
      timeoutMs: 20_000,
    });
    await until(() => seen.includes("printed [secret KEY]"), { timeoutMs: 20_000 });
    leaving.abort();
    await watching;
    const { events, value } = await call("tells");
    expect(value).toBe("told");
    expect(events.map((event) => event.case)).toEqual(["log", "progress", "log", "result"]);
    expect(events[0]).toMatchObject({ value: { level: LogLevel.INFO, message: "one", fieldsJson: '{"n":1}' } });
    expect(events[1]).toMatchObject({ value: { progress: 1, total: 2, message: "half" } });
  });
});

describe("what a module does wrong", () => {
  test.each([
    ["fails", "TypeError: bad [secret KEY]"],
    ["rejects", "a plain text"],
    ["no_json", /^the result is not JSON: .*BigInt/],
    ["no_json_either", "the result is not JSON: it is a function"],
    ["because", "TypeError: fetch failed: nobody is there"],
    ["circle", /^the result is not JSON: .*circular/],
  ])("WORK-12 %s is the error of its call, and nothing else happens", async (tool, words) => {
    const [called, good] = await Promise.all([call(tool), call("add", { a: 1 })]);
    expect(called.isError).toBe(true);
    if (typeof words === "string") expect(called.value).toBe(words);
    else expect(called.value).toMatch(words);
    expect(good.value).toBe(1);
  });

  test("WORK-12 the log has where an error was thrown and its causes, and nothing else that it has", async () => {
    const { events } = await call("because");
    const [log] = events.flatMap((event) => (event.case === "log" ? event.value.message : []));
    expect(log).toMatch(/^TypeError: fetch failed\n.*\.ts:\d+.*\nbecause of: Error: nobody is there\n/s);
    expect(log).not.toContain("a token");
  });

  test.each([
    ["fault", /was ended by an error that nobody caught$/],
    ["leaves", /ended with code 3/],
    ["says_it_ends", /was ended by an error that nobody caught$/],
    ["fills", /was ended: .*memory/],
    ["lies", /broke the protocol: it answered call 0, which it was never given/],
  ])(
    "WORK-12 %s ends its process: its calls are told, the service goes on, and the next call starts it again",
    async (tool, words) => {
      const beside = failureOf(call("deaf"));
      const failure = await failureOf(call(tool));
      expect(failure.code).toBe(Code.Unavailable);
      expect(failure.rawMessage).toMatch(words);
      expect((await beside).rawMessage).toMatch(words);
      expect((await until(async () => call("add", { a: 2 }).catch(() => undefined), { timeoutMs: 20_000 })).value).toBe(
        2,
      );
    },
  );

  test("WORK-12 a loop without end stops neither the service nor other modules, and is ended after its time", async () => {
    await write("other.mjs", `export default { tools: [{ name: "other", run: () => "here" }] };`);
    await offered("other", true);
    const endless = failureOf(call("forever", {}, { timeoutMs: 1_500 }));
    expect((await pool.call({ source: { name: "other" }, tool: "other" })).value).toBe("here");
    expect((await endless).code).toBe(Code.DeadlineExceeded);
    expect((await until(async () => call("add", { a: 3 }).catch(() => undefined), { timeoutMs: 20_000 })).value).toBe(
      3,
    );
  });

  test("a tool that hears that its time is over ends; one that does not is left behind, and other calls with it finish", async () => {
    expect((await failureOf(call("slow", {}, { timeoutMs: 300 }))).rawMessage).toMatch(/timed out/);
    const before = (await call("given")).value as { initialized: number };
    const beside = call("slow", {}, { timeoutMs: 2_500 });
    const told = failureOf(beside);
    expect((await failureOf(call("deaf", {}, { timeoutMs: 300 }))).code).toBe(Code.DeadlineExceeded);
    await until(async () => (await call("add", { a: 4 })).value === 4, { timeoutMs: 20_000 });
    expect((await told).rawMessage).toMatch(/timed out/);
    expect(before.initialized).toBe(1);
  });

  test("WORK-12 one that catches by itself what nobody else does goes on, and takes calls", async () => {
    expect((await call("catches")).value).toBe("went on");
    expect((await call("add", { a: 5 }, { timeoutMs: 5_000 })).value).toBe(5);
  });

  test("one that works on for longer than the grace when a call beside is canceled is not taken for a loop", async () => {
    const canceling = new AbortController();
    const canceled = failureOf(call("slow", {}, {}, canceling.signal));
    await call("add", { a: 1 }); // the other one has begun
    const working = call("blocks", { ms: 450 });
    await new Promise((resolve) => setTimeout(resolve, 50));
    canceling.abort();
    expect((await working).value).toBe("done");
    expect((await canceled).code).toBe(Code.Canceled);
  });

  test("several calls that go on after their time end at once leave the process to its other calls", async () => {
    const path = join(pool.directory, "go on");
    const goesOn: string[] = [];
    const leaving = new AbortController();
    const logs = clientFor(pool.bus, WorkerService).watchWorkerLogs({ source: "good" }, { signal: leaving.signal });
    const watching = (async () => {
      for await (const { update } of logs)
        if (update.case === "line" && /goes on after its time/.test(update.value.log?.message ?? "")) goesOn.push("");
    })().catch(() => {}); // left below
    const other = call("lasts", { path });
    const canceling = new AbortController();
    const given = [1, 2, 3].map(() => failureOf(call("deaf", {}, {}, canceling.signal)));
    const { listWorkers } = clientFor(pool.bus, WorkerService);
    await until(async () => (await listWorkers({})).workers.some(({ callsInFlight }) => callsInFlight === 4));
    canceling.abort();
    await Promise.all(given);
    await Promise.race([until(() => goesOn.length === 3, { timeoutMs: 20_000 }), other]);
    await writeFile(path, "");
    expect((await other).value).toBe("whole");
    leaving.abort();
    await watching;
  });

  test.each([
    ["divides", "told"],
    ["asks_oddly", /name must be a text/],
    ["asks_badly", /arguments must be an object/],
    ["asks_much", /^RangeError: the arguments have more than 2000000 objects/],
    ["logs_oddly", "told"],
    ["lists", /^the result has more than 2000000 objects/],
    ["throws_oddly", "an error without a text"],
  ])("WORK-12 %s says what is no message, and costs no other call its process", async (tool, words) => {
    const path = join(pool.directory, tool);
    const other = call("lasts", { path });
    const called = await call(tool);
    await writeFile(path, "");
    expect((await other).value).toBe("whole");
    expect(called.value).toMatch(words);
  });
});

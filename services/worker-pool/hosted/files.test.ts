import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { WorkerService } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { isAlive } from "../../../test/harness/processes.ts";
import { clientFor } from "../../clients.ts";
import { openPoolOnBus, type PoolOnBus } from "../testing/pool-on-bus.ts";

/** Processes start slowly on a machine that does much else. */
vi.setConfig({ testTimeout: 60_000 });

const GOOD = `export default { tools: [{ name: "add", run: ({ a, b = 0 }: { a: number; b?: number }) => a + b }] };`;

let pool: PoolOnBus;
let hosted: string;

beforeAll(async () => {
  pool = await openPoolOnBus(() => ({ TOOLBUS_WORKER_START_TIMEOUT: "4s" }));
  hosted = join(pool.directory, "hosted");
  await write("good.ts", GOOD);
  await offered("good");
});
afterAll(() => pool[Symbol.asyncDispose]());

const write = (name: string, text: string) => writeFile(join(hosted, name), text);

const status = async (source: string) =>
  (await pool.provider.getProvidedTools({})).sources.find((one) => one.source === source);

const offered = (source: string) =>
  until(async () => (await status(source))?.available, { timeoutMs: 30_000, what: `${source} to be offered` });

const toolsOf = async (source: string) =>
  (await pool.provider.getProvidedTools({})).tools.filter((one) => one.source === source).map(({ tool }) => tool?.name);

const call = (tool: string, args: object = {}) => pool.call({ source: { name: "good" }, tool, args });

const failureOf = (called: Promise<unknown>) =>
  called.then(
    () => expect.fail("the call succeeded"),
    (error: unknown) => ConnectError.from(error),
  );

describe("files of the directory", () => {
  const BAD: [string, string, RegExp][] = [
    ["no-export.ts", "export const tools = [];", /default export/],
    ["no-tools.ts", "export default { tools: [] };", /at least one tool/],
    ["syntax.ts", "export default {", /refused|Unexpected|SyntaxError/],
    ["throws.ts", 'throw new Error("not today");', /not today/],
    ["missing.ts", 'import "./absent.ts";', /absent\.ts/],
    [
      "field.ts",
      'export default { tools: [{ name: "field_a", run() {}, exec() {} }] };',
      /tools\[0\]\.exec: is no field/,
    ],
    ["name.ts", 'export default { tools: [{ name: "with blank", run() {} }] };', /tools\[0\]\.name/],
    [
      "twice.ts",
      'export default { tools: [{ name: "x1", run() {} }, { name: "x1", run() {} }] };',
      /"x1" is there twice/,
    ],
    [
      "duplicate.ts",
      'export default { tools: [{ name: "add", run() {} }] };',
      /the tool "add" is registered by good\.ts already/,
    ],
    [
      "start.ts",
      'export default { initialize() { throw new Error("no key"); }, tools: [{ name: "s1", run() {} }] };',
      /initialize failed: no key/,
    ],
    ["hangs.ts", "for (;;);", /was not loaded within 4000 ms/],
  ];

  test.each(BAD)("LOOP-9 WORK-12 %s is refused with its reason and hides no other", async (file, text, words) => {
    await write(file, text);
    const source = file.replace(/\.ts$/, "");
    await until(async () => words.test((await status(source))?.reason ?? ""), {
      timeoutMs: 30_000,
      what: String(words),
    });
    expect(await toolsOf(source)).toEqual([]);
    expect((await failureOf(pool.call({ source: { name: source }, tool: "x" }))).code).toBe(Code.FailedPrecondition);
    expect((await call("add", { a: 5 })).value).toBe(5);
    await rm(join(hosted, file));
    await until(async () => (await status(source)) === undefined, { timeoutMs: 30_000 });
  });

  test("LOOP-9 a module that cannot be initialized is not kept, and its names are free", async () => {
    const offer = (more: string) => `export default { ${more} tools: [{ name: "free", run: () => "here" }] };`;
    await write("keyless.ts", offer('initialize() { throw new Error("no key"); },'));
    await until(async () => (await status("keyless"))?.reason.includes("no key"), { timeoutMs: 30_000 });
    await write("keyed.ts", offer(""));
    await offered("keyed");
    expect((await pool.call({ tool: "free" })).value).toBe("here");
    await Promise.all([rm(join(hosted, "keyless.ts")), rm(join(hosted, "keyed.ts"))]);
  });

  test("PROD-1 a module that a package.json makes CommonJS is refused with the way out", async () => {
    await mkdir(join(hosted, "plain"));
    await write("plain/package.json", '{"type":"commonjs"}');
    await write("plain/inner.js", "export default { tools: [{ name: 'inner', run() {} }] };");
    await write("outer.ts", 'export { default } from "./plain/inner.js";');
    const reason = async () => (await status("outer"))?.reason;
    const words = /export.*makes it CommonJS: put one with \{"type":"module"\} beside it/s;
    await until(async () => words.test((await reason()) ?? ""), { timeoutMs: 30_000, what: String(words) });
  });

  test("a change is loaded, of what it imports too, watchers are told, and calls in flight finish on what they began", async () => {
    await mkdir(join(hosted, "parts"), { recursive: true });
    await write("parts/word.ts", 'export const word = "old";');
    await write(
      "change.ts",
      'import { word } from "./parts/word.ts";\nexport default { tools: [{ name: "c1", run: (_: object, { signal }: any) => _ && "wait" in _ ? new Promise((end) => setTimeout(() => end(word), 1500)) : word }] };',
    );
    await offered("change");
    expect((await pool.call({ source: { name: "change" }, tool: "c1" })).value).toBe("old");
    const inFlight = pool.call({ source: { name: "change" }, tool: "c1", args: { wait: true } });
    const names: string[][] = [];
    const leaving = new AbortController();
    const watching = (async () => {
      for await (const { tools } of pool.provider.watchProvidedTools({}, { signal: leaving.signal }))
        names.push(tools.map(({ tool }) => tool?.name ?? ""));
    })().catch(() => {}); // left below
    await write("parts/word.ts", 'export const word = "new";');
    await until(async () => (await pool.call({ source: { name: "change" }, tool: "c1" })).value === "new", {
      timeoutMs: 30_000,
    });
    expect((await inFlight).value).toBe("old");
    await write("change.ts", 'export default { tools: [{ name: "c2", run: () => 2 }] };');
    await until(async () => names.some((list) => list.includes("c2") && !list.includes("c1")), { timeoutMs: 30_000 });
    leaving.abort();
    await watching;
  });

  test("LOOP-9 a module has no process before its first call, unless it has something to initialize", async () => {
    const workers = clientFor(pool.bus, WorkerService);
    const processOf = async (source: string) =>
      (await workers.listWorkers({})).workers.find(({ file }) => file === `${source}.ts`)?.processId ?? 0;
    await write("quiet.ts", 'export default { tools: [{ name: "q1", run: () => process.pid }] };');
    await write("eager.ts", 'export default { initialize() {}, tools: [{ name: "e1", run: () => 1 }] };');
    await Promise.all([offered("quiet"), offered("eager")]);
    expect(await processOf("eager")).toBeGreaterThan(0);
    await until(async () => (await processOf("quiet")) === 0, { timeoutMs: 30_000 });
    expect(await toolsOf("quiet")).toEqual(["q1"]);
    const { value } = await pool.call({ source: { name: "quiet" }, tool: "q1" });
    expect((await pool.call({ source: { name: "quiet" }, tool: "q1" })).value, "it stays then").toBe(value);
    expect(await processOf("quiet")).toBeGreaterThan(0);
  });

  test("LOOP-9 a module that fails to start again is tried again, though its file has not changed", async () => {
    await write(
      "again.ts",
      `import { existsSync } from "node:fs";
      export default {
        initialize() { if (existsSync("down.txt")) throw new Error("the database is away"); },
        tools: [{ name: "again", run: () => "here" }, { name: "leave", run: () => process.exit(3) }] };`,
    );
    await offered("again");
    const of = (tool: string) => pool.call({ source: { name: "again" }, tool });
    await write("down.txt", "");
    await failureOf(of("leave"));
    expect((await failureOf(of("again"))).message).toContain("initialize failed: the database is away");
    expect((await status("again"))?.available, "it is offered all the same").toBe(true);
    await rm(join(hosted, "down.txt"));
    const answer = () => of("again").catch(() => undefined); // its wait is not over yet
    expect((await until(answer, { timeoutMs: 20_000 })).value).toBe("here");
    expect((await pool.call({ tool: "again" })).value, "by its bare name, too").toBe("here");
    await rm(join(hosted, "again.ts"));
  });

  test("LOOP-9 a module whose first start fails is tried again, though no file has changed", async () => {
    await using own = await openPoolOnBus(() => ({ TOOLBUS_WORKER_BACKOFF: "100ms" }));
    const down = join(own.directory, "down.txt");
    await writeFile(down, "");
    await writeFile(
      join(own.directory, "hosted", "late.ts"),
      `import { existsSync } from "node:fs";
      export default {
        initialize() { if (existsSync(${JSON.stringify(down)})) throw new Error("the database is away"); },
        tools: [{ name: "late", run: () => "here" }] };`,
    );
    const late = async () => (await own.provider.getProvidedTools({})).sources.find(({ source }) => source === "late");
    await until(async () => (await late())?.reason.includes("the database is away"), { timeoutMs: 30_000 });
    await rm(down);
    await until(async () => (await late())?.available, { timeoutMs: 30_000, what: "the module to be offered" });
    expect((await own.call({ tool: "late" })).value).toBe("here");
  });

  test("LOOP-9 a module that is removed while its start fails does not come back", async () => {
    await using own = await openPoolOnBus(() => ({ TOOLBUS_WORKER_BACKOFF: "1ms" }));
    const [started, file] = [join(own.directory, "started"), join(own.directory, "hosted", "slow.ts")];
    const [failed, next] = [join(own.directory, "failed"), join(own.directory, "hosted", "next.ts")];
    await writeFile(
      file,
      `import { existsSync, writeFileSync } from "node:fs";
      export default {
        async initialize() {
          writeFileSync(${JSON.stringify(started)}, "");
          while (existsSync(${JSON.stringify(file)})) await new Promise((resolve) => setTimeout(resolve, 10));
          await new Promise((resolve) => setTimeout(resolve, 1_000)); // the pool hears of it meanwhile
          writeFileSync(${JSON.stringify(failed)}, "");
          throw new Error("too late");
        },
        tools: [{ name: "slow", run: () => "here" }] };`,
    );
    await until(() => existsSync(started), { timeoutMs: 30_000 });
    await rm(file);
    await until(() => existsSync(failed), { timeoutMs: 30_000 });
    await writeFile(next, 'export default { tools: [{ name: "next", run: () => 1 }] };');
    const sources = async () => (await own.provider.getProvidedTools({})).sources;
    await until(async () => (await sources()).some(({ source, available }) => source === "next" && available), {
      timeoutMs: 30_000,
    });
    expect((await sources()).map(({ source }) => source)).not.toContain("slow");
  });

  test("LOOP-9 a module among very many files has one process, which is listed", async () => {
    await using own = await openPoolOnBus((directory) => {
      mkdirSync(join(directory, "hosted"));
      writeFileSync(join(directory, "out.mjs"), "");
      const kept = 'export default { initialize() {}, tools: [{ name: "pid", run: () => process.pid }] };';
      writeFileSync(join(directory, "hosted", "a.mjs"), kept);
      for (let n = 0; n < 256; n += 1) symlinkSync(join(directory, "out.mjs"), join(directory, "hosted", `b${n}.mjs`));
      return {};
    });
    const { workers } = await clientFor(own.bus, WorkerService).listWorkers({});
    expect(workers.map(({ file }) => file)).toEqual(["a.mjs"]);
    expect((await own.call({ tool: "pid" })).value).toBe(workers[0]?.processId);
  });

  test("LOOP-9 a module that is removed while a call starts it leaves no process", async () => {
    const { listWorkers } = clientFor(pool.bus, WorkerService);
    const workers = async () => (await listWorkers({})).workers.filter(({ file }) => file === "starts.ts");
    const slow = join(pool.directory, "slow");
    await write(
      "starts.ts",
      `import { existsSync, rmSync } from "node:fs";
      const isSlow = existsSync(${JSON.stringify(slow)});
      rmSync(${JSON.stringify(slow)}, { force: true });
      if (isSlow) await new Promise((resolve) => setTimeout(resolve, 2_000));
      export default { tools: [{ name: "starts", run: () => 1 }] };`,
    );
    await offered("starts");
    await until(async () => (await workers()).length === 0, { timeoutMs: 20_000 });
    await writeFile(slow, "");
    const called = pool.call({ source: { name: "starts" }, tool: "starts" }).catch(() => {}); // its module may be gone
    await until(() => !existsSync(slow), { timeoutMs: 20_000 });
    await rm(join(hosted, "starts.ts"));
    await until(async () => (await status("starts")) === undefined, { timeoutMs: 20_000 });
    await called;
    await until(async () => (await workers()).length === 0, { timeoutMs: 5_000 });
  });

  test("LOOP-9 a call that waits for its place while its module is removed is told that the module is gone", async () => {
    await using own = await openPoolOnBus(() => ({ TOOLBUS_POOL_CALLS: "1", TOOLBUS_POOL_WAITING: "1" }));
    const file = (name: string) => join(own.directory, "hosted", name);
    const lasts = `import { existsSync } from "node:fs";
      export default { tools: [{ name: "lasts", run: ({ path }) => new Promise((resolve) => {
        const timer = setInterval(() => { if (existsSync(path)) { clearInterval(timer); resolve("whole"); } }, 20); }) }] };`;
    await writeFile(file("first.mjs"), lasts);
    await writeFile(file("gone.mjs"), lasts.replace('"lasts"', '"goes"'));
    const available = async () =>
      (await own.provider.getProvidedTools({})).sources.filter((one) => one.available).length;
    await until(async () => (await available()) === 2, { timeoutMs: 30_000 });
    const path = join(own.directory, "go on");
    const first = own.call({ source: { name: "first" }, tool: "lasts", args: { path } });
    const { listWorkers } = clientFor(own.bus, WorkerService);
    await until(async () => (await listWorkers({})).workers.some(({ callsInFlight }) => callsInFlight === 1));
    const others = [1, 2].map(() => failureOf(own.call({ source: { name: "gone" }, tool: "goes" })));
    expect((await Promise.race(others)).code, "one waits in line, and the line is full").toBe(Code.ResourceExhausted);
    await rm(file("gone.mjs"));
    await until(async () => (await available()) === 1, { timeoutMs: 30_000 });
    await writeFile(path, "");
    expect((await first).value).toBe("whole");
    const codes = (await Promise.all(others)).map(({ code }) => code);
    expect(codes.toSorted()).toEqual([Code.NotFound, Code.ResourceExhausted]);
  });

  test("LOOP-9 a call that waits for its place while its module loses the tool is told that there is none", async () => {
    await using own = await openPoolOnBus(() => ({ TOOLBUS_POOL_CALLS: "1" }));
    const module = (tool: string) => `import { existsSync } from "node:fs";
      export default { tools: [{ name: "${tool}", async run({ path }) {
        while (!existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 20));
        return "whole";
      } }] };`;
    const [first = "", other = "", path = ""] = ["hosted/one.mjs", "hosted/other.mjs", "go on"].map((it) =>
      join(own.directory, it),
    );
    await writeFile(first, module("one"));
    await writeFile(other, module("before"));
    const names = async () => (await own.provider.getProvidedTools({})).tools.map(({ tool }) => tool?.name);
    await until(async () => (await names()).includes("before") && (await names()).includes("one"));
    const running = own.call({ tool: "one", args: { path } });
    const { listWorkers } = clientFor(own.bus, WorkerService);
    await until(async () => (await listWorkers({})).workers.some(({ callsInFlight }) => callsInFlight === 1));
    const waiting = failureOf(own.call({ source: { name: "other" }, tool: "before", args: { path } }));
    await until(async () => (await listWorkers({})).workers.length === 2);
    await writeFile(`${other}.new`, module("after"));
    await rename(`${other}.new`, other); // never half written: the call would be told of that
    await until(async () => (await names()).includes("after"), { timeoutMs: 20_000 });
    await writeFile(path, "");
    expect((await running).value).toBe("whole");
    expect(failureFromConnectError(await waiting)).toMatchObject({ code: "not_found", reason: "TOOL_NOT_FOUND" });
  });

  test("LOOP-14 a call whose time ends while it waits for its place is told that nothing was started", async () => {
    await using own = await openPoolOnBus(() => ({ TOOLBUS_POOL_CALLS: "1" }));
    const text = `export default { tools: [{ name: "rests", run: (_, { signal }) => new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason)); }) }] };`;
    await writeFile(join(own.directory, "hosted", "resting.mjs"), text);
    const rests = (timeoutMs: number) =>
      failureOf(own.call({ source: { name: "resting" }, tool: "rests", timeoutMs })).then(failureFromConnectError);
    await until(async () => (await own.provider.getProvidedTools({})).sources.some((one) => one.available), {
      timeoutMs: 30_000,
    });
    const first = rests(2_000);
    const { listWorkers } = clientFor(own.bus, WorkerService);
    await until(async () => (await listWorkers({})).workers.some(({ callsInFlight }) => callsInFlight === 1));
    expect(await rests(100)).toMatchObject({ code: "deadline_exceeded", reason: "CALL_NOT_STARTED" });
    expect(await first).toMatchObject({ code: "deadline_exceeded", reason: "DEADLINE_EXCEEDED" });
  });

  test("WORK-12 a call that comes before the end of a module's process is told runs on the next one", async () => {
    await write(
      "holds.ts",
      `import { spawn } from "node:child_process";
      import { readFileSync } from "node:fs";
      const session = (pid: number) => Number(readFileSync("/proc/" + pid + "/stat", "utf8").split(") ")[1].split(" ")[3]);
      export default { tools: [
        { name: "pid_of", run: () => process.pid },
        { name: "leave_open", run: () => {
          const holder = spawn("env", ["-i", "setsid", "sleep", "1"], { stdio: ["ignore", "ignore", "inherit"] });
          while (session(holder.pid!) !== holder.pid);
          process.exit(3); } }] };`,
    );
    await offered("holds");
    const of = (tool: string) => pool.call({ source: { name: "holds" }, tool });
    const pid = (await of("pid_of")).value as number;
    const left = failureOf(of("leave_open"));
    await until(() => !isAlive(pid), { timeoutMs: 20_000 });
    expect((await of("pid_of")).value).not.toBe(pid);
    expect((await left).code).toBe(Code.Unavailable);
    await rm(join(hosted, "holds.ts"));
  });

  test("the example keeps notes", async () => {
    await write("notes.ts", await readFile(new URL("../../../examples/hosted/notes.ts", import.meta.url), "utf8"));
    await offered("notes");
    expect(await toolsOf("notes")).toEqual(["remember", "summarize"]);
    const remember = { source: { name: "notes" }, tool: "remember", args: { text: "milk" } };
    expect((await pool.call(remember)).value).toEqual({ notes: 1 });
    expect((await pool.call(remember)).value).toEqual({ notes: 2 });
    const alone = await pool.call({ source: { name: "notes" }, tool: "summarize" });
    expect(alone).toMatchObject({ isError: true, value: "the call comes from no agent" });
  });
});

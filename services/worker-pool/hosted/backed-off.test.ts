import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { openTestWorkers } from "../testing/workers.ts";

const failureOf = (call: Promise<unknown>) =>
  call.then(() => expect.fail("the call succeeded"), failureFromConnectError);

test.each([
  ["throws", 'const here = 1;\nthrow new Error("not today");\n', /bad\.mjs is refused: not today\n.*bad\.mjs:2:7/s],
  ["has no syntax", "export default {\n  tools: [[},\n};\n", /bad\.mjs is refused: SyntaxError: .*bad\.mjs:2\n/s],
])(
  "WORK-8 WORK-12 operators are told where a module cannot be loaded that %s",
  async (_how, text, words) => {
    await using workers = await openTestWorkers({});
    const hosted = join(workers.directory, "hosted");
    await mkdir(hosted, { recursive: true });
    await writeFile(join(hosted, "bad.mjs"), text);
    await until(() => words.test(workers.warnings.join()), { timeoutMs: 20_000 });
  },
  60_000,
);

test("WORK-8 operators are told once of a module that is tried again and again", async () => {
  await using workers = await openTestWorkers({}, { TOOLBUS_WORKER_BACKOFF: "1ms" });
  const [hosted, tries] = ["hosted", "tries.txt"].map((it) => join(workers.directory, it)) as [string, string];
  await mkdir(hosted, { recursive: true });
  const text = `import { appendFileSync } from "node:fs";
    appendFileSync(${JSON.stringify(tries)}, "x"); throw new Error("not today");`;
  await writeFile(join(hosted, "bad.mjs"), text);
  await until(() => existsSync(tries) && readFileSync(tries).length > 3, { timeoutMs: 30_000 });
  expect(workers.warnings.filter((text) => text.includes("not today"))).toHaveLength(1);
}, 60_000);

const LEAVES = "export default { tools: [{ name: 'leaves', run() { process.exit(3); } }] };";

async function openModule(text: string) {
  const workers = await openTestWorkers({}, { TOOLBUS_WORKER_BACKOFF: "30s" });
  const hosted = join(workers.directory, "hosted");
  await mkdir(hosted, { recursive: true });
  await writeFile(join(hosted, "bad.mjs"), text);
  const isOffered = async () =>
    (await workers.provider.getProvidedTools({})).sources.some(({ available }) => available);
  await until(isOffered, { timeoutMs: 20_000 });
  return workers;
}

const THROWS = `export default { tools: [{ name: "throws", run() {
  setTimeout(() => { throw new Error("of alice: 17"); });
  return new Promise(() => {});
} }] };`;

test("WORK-8 WORK-12 operators alone are told what a module's error says that nobody caught, and where it was", async () => {
  await using workers = await openModule(THROWS);
  const { message } = await failureOf(workers.call("bad.throws"));
  expect(message).toBe("the module bad.mjs was ended by an error that nobody caught");
  await until(() => /nobody caught: of alice: 17\n.*bad\.mjs:2:/s.test(workers.warnings.join()));
}, 60_000);

test("WORK-12 a module that ends in initialize when it is started again starts no call, and is backed off", async () => {
  await using workers = await openModule(`import { existsSync, readFileSync } from "node:fs";
    export default {
      initialize() { if (existsSync("down.txt")) process.exit(4); },
      tools: [{ name: "leaves", run() { process.exit(3); } }] };`);
  await writeFile(join(workers.directory, "hosted", "down.txt"), "");
  const reasons: (string | undefined)[] = [];
  for (let count = 0; count < 4; count += 1) reasons.push((await failureOf(workers.call("bad.leaves"))).reason);
  expect(reasons).toEqual(["WORKER_CRASHED", "WORKER_START_FAILED", "WORKER_START_FAILED", "WORKER_BACKED_OFF"]);
  expect(workers.warnings.at(-1)).toContain("the module bad.mjs ended with code 4");
}, 60_000);

test("WORK-12 a call to a module that keeps ending is told when it is started again", async () => {
  await using workers = await openModule(LEAVES);
  for (let count = 0; count < 3; count += 1)
    expect((await failureOf(workers.call("bad.leaves"))).reason).toBe("WORKER_CRASHED");
  const refused = await failureOf(workers.call("bad.leaves"));
  expect(refused).toMatchObject({ code: "unavailable", reason: "WORKER_BACKED_OFF" });
  expect(refused.message).toMatch(
    /^it keeps failing and is started again in \d+ ms; last: the module bad\.mjs ended with code 3/,
  );
  expect(refused.metadata).toEqual({ retry_in_ms: expect.stringMatching(/^\d+$/) });
}, 60_000);

test("LOOP-9 a call to a tool that a module has no more when it is started again is no success", async () => {
  await using workers = await openModule(`import { existsSync } from "node:fs";
    export default { tools: [{ name: existsSync("other.txt") ? "other" : "first", run: () => 1 }] };`);
  await until(async () => (await workers.service.listWorkers({})).workers.length === 0);
  await writeFile(join(workers.directory, "hosted", "other.txt"), "");
  const { isError, result } = await workers.call("bad.first");
  expect({ isError, result }).toEqual({
    isError: true,
    result: { error: "the module offers no tool first any more" },
  });
}, 60_000);

test("LOOP-9 a module that changes while a call starts it has no process after the pool's end", async () => {
  const workers = await openModule(`import { existsSync, writeFileSync } from "node:fs";
    if (existsSync("slow.txt")) {
      writeFileSync("started.txt", "");
      await new Promise((resolve) => setTimeout(resolve, 10_000));
    }
    export default { tools: [{ name: "starts", run: () => 1 }] };`);
  const elsewhere = await mkdtemp(join(tmpdir(), "toolbus-ended-"));
  const [hosted, late] = [join(workers.directory, "hosted"), join(elsewhere, "late.txt")];
  await using _ = { [Symbol.asyncDispose]: () => rm(elsewhere, { recursive: true }) };
  const states = async () => (await workers.service.listWorkers({})).workers.map(({ state }) => state);
  await until(async () => (await states()).length === 0);
  await writeFile(join(hosted, "slow.txt"), "");
  const told = failureOf(workers.call("bad.starts"));
  await until(() => existsSync(join(hosted, "started.txt")), { timeoutMs: 20_000 });
  const next = `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(late)}, "");
    export default { initialize() {}, tools: [{ name: "starts", run: () => 2 }] };`;
  await writeFile(join(hosted, "bad.mjs"), next);
  await delay(2_000); // the pool hears of it, and waits for what starts
  await workers[Symbol.asyncDispose]();
  expect((await told).reason).toBe("WORKER_STOPPED");
  expect(existsSync(late)).toBe(false);
  expect(workers.warnings.join()).not.toContain("is refused");
}, 60_000);

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { HEAD, openTestWorkers, type TestWorkers } from "../testing/workers.ts";
import type { Ask } from "../worker/frames.ts";

const FILE = `${HEAD}import time
from toolbus_sdk import call_tool

def count(left: int) -> int:
    return 1 + call_tool("count", left=left - 1) if left else 0

async def count_awaiting(left: int) -> int:
    return 1 + await call_tool("count_awaiting", left=left - 1) if left else 0

def count_and_linger() -> int:
    call_tool("count", left=0)
    print("lingers")
    time.sleep(60)
`;
const MODULE = `export default { tools: [{ name: "count", async run({ left }, { registry }) {
  return left ? 1 + await registry.call("count", { left: left - 1 }) : 0;
} }] };`;

test.each([
  ["tool.count", {}],
  ["tool.count_awaiting", {}],
  ["module.count", { config: { file: "module.mjs" } }],
])(
  "WORK-10 WORK-11 calls that wait for a tool that they called leave their places to it: %s",
  async (name, input) => {
    const hosted = await mkdtemp(join(tmpdir(), "toolbus-hosted-"));
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rm(hosted, { recursive: true }));
    await writeFile(join(hosted, "module.mjs"), MODULE);
    const host = {
      async answer(ask: Ask) {
        if (!("argumentsJson" in ask)) throw new Error("it calls a tool");
        const { result } = await workers.call(name, JSON.parse(ask.argumentsJson), input);
        return { kind: "result", resultJson: JSON.stringify(result) } as const;
      },
    };
    const environment = { TOOLBUS_HOSTED: hosted, TOOLBUS_WORKER_CALLS: "4", TOOLBUS_POOL_CALLS: "4" };
    const workers: TestWorkers = stack.use(await openTestWorkers({ "tool.py": FILE }, environment, host));
    const counted = await Promise.all(Array.from({ length: 12 }, () => workers.call(name, { left: 3 }, input)));
    expect(counted.map(({ result }) => result)).toEqual(Array(12).fill(3));
  },
  30_000,
);

test("WORK-10 SEC-5 calls that go on after what they asked for keep no place from others", async () => {
  const host = { answer: async () => ({ kind: "result", resultJson: "0" }) as const };
  await using workers = await openTestWorkers({ "tool.py": FILE }, { TOOLBUS_WORKER_CALLS: "2" }, host);
  const lines = workers.watchLogs();
  const lingering = Array.from({ length: 4 }, () => workers.call("tool.count_and_linger").catch(() => "ended"));
  await vi.waitFor(() => expect(lines.filter(({ log }) => log?.message === "lingers")).toHaveLength(4), 20_000);
  expect((await workers.call("tool.count", { left: 0 })).result).toBe(0);
  await workers[Symbol.asyncDispose]();
  expect(await Promise.all(lingering)).toEqual(Array(4).fill("ended"));
});

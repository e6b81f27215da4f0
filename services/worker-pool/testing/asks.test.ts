import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { delay } from "#runtime/time/delay.ts";
import { HEAD, openTestWorkers } from "./workers.ts";

const PYTHON = `${HEAD}import asyncio
from toolbus_sdk import call_tool

async def ask(number: int) -> int:
    return sum(await asyncio.gather(*(call_tool("one") for _ in range(number))))
`;
const MODULE = `export default { tools: [{ name: "ask", async run({ number }, { registry }) {
  const answers = await Promise.all(Array.from({ length: number }, () => registry.call("one")));
  return answers.reduce((sum, answer) => sum + answer, 0);
} }] };`;

test("SEC-5 what one call asks at once is carried out in turn, and none of it is refused, in Python and in a module", async () => {
  const hosted = await mkdtemp(join(tmpdir(), "toolbus-hosted-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(hosted, { recursive: true }));
  await writeFile(join(hosted, "module.mjs"), MODULE);
  let [running, most] = [0, 0];
  const host = {
    async answer() {
      most = Math.max(most, ++running);
      await delay(1);
      running -= 1;
      return { kind: "result", resultJson: "1" } as const;
    },
  };
  const workers = stack.use(await openTestWorkers({ "tool.py": PYTHON }, { TOOLBUS_HOSTED: hosted }, host));
  for (const source of ["tool", "module"]) {
    const config = source === "module" ? { config: { file: "module.mjs" } } : {};
    const { result } = await workers.call(`${source}.ask`, { number: 1_200 }, config);
    expect(result, source).toBe(1_200);
  }
  expect(most).toBe(16);
}, 60_000);

import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { watchDirectories } from "./watch-directories.ts";

/** A directory with a file that was there before. */
async function openDirectory(stack: AsyncDisposableStack) {
  const root = await mkdtemp(join(tmpdir(), "toolbus-watch-"));
  stack.defer(() => rm(root, { recursive: true, force: true }));
  await writeFile(join(root, "old.json"), "1");
  await delay(100); // longer than a file's time may be behind
  return { root, sinceMs: Date.now() };
}

test.each([
  ["a file that is written", (root: string) => writeFile(join(root, "new.json"), "1")],
  ["a file that is changed", (root: string) => writeFile(join(root, "old.json"), "2")],
  ["a file that is removed", (root: string) => rm(join(root, "old.json"))],
  [
    "a file that says that it is old",
    async (root: string) => {
      await writeFile(join(root, "new.json"), "1");
      await utimes(join(root, "new.json"), 1, 1);
    },
  ],
])("ORCH-5 %s is noticed before the directory is scanned, and after", async (_what, change) => {
  for (const isAfter of [false, true]) {
    await using stack = new AsyncDisposableStack();
    const { root, sinceMs } = await openDirectory(stack);
    let changes = 0;
    if (!isAfter) await change(root);
    stack.use(watchDirectories([root], sinceMs, () => (changes += 1)));
    if (isAfter) {
      await delay(300); // it is scanned, and what was there before is no change
      expect(changes).toBe(0);
      await change(root);
    }
    await until(() => changes > 0, { what: "the change" });
  }
});

test("ORCH-5 a directory that comes later is followed", async () => {
  await using stack = new AsyncDisposableStack();
  const { root, sinceMs } = await openDirectory(stack);
  let changes = 0;
  stack.use(watchDirectories([join(root, "tools")], sinceMs, () => (changes += 1)));
  await delay(300);
  await mkdir(join(root, "tools"));
  await writeFile(join(root, "tools", "new.json"), "1");
  await until(() => changes > 0, { what: "the change" });
});

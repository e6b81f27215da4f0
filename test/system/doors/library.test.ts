import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";

test("DOOR-5 the library for TypeScript plays all cases, straight and over connections that are cut", async () => {
  const main = fileURLToPath(new URL("../../../sdk/cases/main.ts", import.meta.url));
  await using child = await openChildProcess({ command: process.execPath, args: [main, "typescript"] });
  const lines = await Array.fromAsync(child.lines());
  expect((await child.exited).code, lines.join("\n")).toBe(0);
  const played = lines.filter((line) => line.startsWith("ok "));
  expect(played.length).toBeGreaterThanOrEqual(26);
  expect(new Set(played).size).toBe(played.length / 2);
  expect(Number(/^(\d+) connections were cut$/.exec(lines.at(-1) ?? "")?.[1])).toBeGreaterThan(10);
}, 120_000);

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { delay } from "#runtime/time/delay.ts";
import { publicServices } from "../processes.ts";
import { createHealth } from "./health.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function openHealth() {
  const asked: string[] = [];
  const isServing = async (process: string) => {
    asked.push(process);
    await delay(1);
    return true;
  };
  const options = { services: publicServices, processOf: () => "spaces", isServing, storageFault: () => undefined };
  return { health: createHealth({ ...options, intervalMs: 1_000 }), asked };
}

it("SEC-5 strangers who ask at once are answered by one look", async () => {
  const { health, asked } = openHealth();
  const lists = Promise.all(Array.from({ length: 100 }, () => health.list()));
  await vi.advanceTimersByTimeAsync(1);
  expect((await lists).every((list) => list.get(publicServices[0]!.typeName))).toBe(true);
  expect(asked).toEqual(["spaces"]);
  void health.check(publicServices[0]!.typeName);
  expect(asked).toHaveLength(2);
});

it("SEC-5 strangers who watch look together, whenever they began", async () => {
  const { health, asked } = openHealth();
  const leaving = new AbortController();
  const watching: Promise<void>[] = [];
  const watch = async () => {
    for await (const _ of health.watch(publicServices[0]!.typeName, leaving.signal));
  };
  for (let n = 0; n < 50; n += 1) {
    watching.push(watch());
    await vi.advanceTimersByTimeAsync(7);
  }
  await vi.advanceTimersByTimeAsync(3_000);
  asked.length = 0;
  await vi.advanceTimersByTimeAsync(3_000);
  expect(asked).toHaveLength(3);
  leaving.abort();
  await Promise.allSettled(watching);
});

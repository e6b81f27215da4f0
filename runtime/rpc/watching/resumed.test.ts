import { expect, test, vi } from "vitest";
import { connectError } from "../../failure/connect.ts";
import { resumed, WAITED_MS } from "./resumed.ts";

test("BUS-6 resumed-2 who waits for a stream that nobody serves is told when the patience is over, and not later", async () => {
  vi.useFakeTimers();
  const openedAtMs: number[] = [];
  // biome-ignore lint/correctness/useYield: it breaks before it tells anything
  async function* open(): AsyncGenerator<never> {
    openedAtMs.push(performance.now());
    throw connectError("unavailable", "nobody serves it", { reason: "SERVICE_UNAVAILABLE" });
  }
  const told = expect(Array.fromAsync(resumed({ open, patienceMs: WAITED_MS }))).rejects.toThrow("nobody serves it");
  await vi.advanceTimersByTimeAsync(2 * WAITED_MS);
  await told;
  expect(openedAtMs.at(-1)! - openedAtMs[0]!).toBe(WAITED_MS);
  vi.useRealTimers();
});

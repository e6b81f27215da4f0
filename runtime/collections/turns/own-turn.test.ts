import { expect, test } from "vitest";
import { ownTurn } from "./own-turn.ts";

const { signal } = new AbortController();

function busy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test("SEC-5 between two pieces of heavy work others have as long as the first one took", async () => {
  const begun: number[] = [];
  const piece = async () => {
    await ownTurn({ sender: "ada", signal });
    begun.push(performance.now());
    busy(40);
  };
  let ticks = 0;
  const others = setInterval(() => {
    ticks += 1;
  }, 2);
  await Promise.all([piece(), piece(), piece()]);
  clearInterval(others);
  expect(begun[1]! - begun[0]!).toBeGreaterThanOrEqual(75);
  expect(begun[2]! - begun[1]!).toBeGreaterThanOrEqual(75);
  expect(ticks).toBeGreaterThan(10);
});

test("SEC-5 who brings much keeps nobody else waiting for more than one piece of it", async () => {
  const order: string[] = [];
  const piece = async (sender: string) => {
    await ownTurn({ sender, signal });
    order.push(sender);
  };
  await Promise.all([...Array.from({ length: 5 }, () => piece("mallory")), piece("ada")]);
  expect(order.indexOf("ada")).toBeLessThan(2);
});

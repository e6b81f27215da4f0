import { expect, test } from "vitest";
import { TransientMap } from "./transient-map.ts";

test("has what was set and not deleted, whatever the order of the two was", () => {
  const map = new TransientMap<number>();
  const model = new Map<string, number>();
  let seed = 7;
  const next = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  const keys = [
    "__proto__",
    "constructor",
    "toString",
    "0",
    "17",
    "",
    ...Array.from({ length: 30 }, (_, n) => `k${n}`),
  ];
  for (let step = 0; step < 20_000; step += 1) {
    const key = keys[next(keys.length)]!;
    if (next(2) === 0) {
      map.set(key, step);
      model.set(key, step);
    } else {
      expect(map.delete(key)).toBe(model.delete(key));
    }
    expect([map.get(key), map.has(key), map.size]).toEqual([model.get(key), model.has(key), model.size]);
  }
  expect(map.keys().toSorted()).toEqual([...model.keys()].toSorted());
  expect(map.values().toSorted((a, b) => a - b)).toEqual([...model.values()].toSorted((a, b) => a - b));
});

test("what is deleted while the values are gone through is not missed, and nothing is met twice", () => {
  const map = new TransientMap<string>();
  for (const key of ["a", "b", "c", "d"]) map.set(key, key);
  const met: string[] = [];
  for (const value of map.values()) {
    met.push(value);
    map.delete(value);
  }
  expect(met.toSorted()).toEqual(["a", "b", "c", "d"]);
  expect(map.size).toBe(0);
});

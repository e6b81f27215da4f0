import { expect, test } from "vitest";
import { BoundedMap } from "./bounded-map.ts";

test("the entry that was set first is forgotten", () => {
  const map = new BoundedMap<string, number>(2).set("a", 1).set("b", 2).set("c", 3);
  expect([...map]).toEqual([
    ["b", 2],
    ["c", 3],
  ]);
});

test("an entry that is set again is the youngest, and takes no second place", () => {
  const map = new BoundedMap<string, number>(2).set("a", 1).set("b", 2).set("a", 3).set("c", 4);
  expect([...map]).toEqual([
    ["a", 3],
    ["c", 4],
  ]);
});

test("a key that is undefined is forgotten like any other", () => {
  expect([...new BoundedMap<string | undefined, number>(1).set(undefined, 1).set("a", 2)]).toEqual([["a", 2]]);
});

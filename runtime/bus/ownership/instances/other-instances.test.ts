import { expect, test } from "vitest";
import { refuse } from "../../../failure/failure.ts";
import { until } from "../../../time/until.ts";
import { OtherInstances } from "./other-instances.ts";

interface Part {
  readonly name: string;
}

function openOthers(there: Set<string>) {
  const forgotten: string[] = [];
  const instances = {
    list: async () => [...there],
    known: () => [...there],
    forget: (name: string) => void forgotten.push(name),
  };
  const warnings: string[] = [];
  const logger = { warn: (message: string) => void warnings.push(message) };
  const others = new OtherInstances<Part>({ instance: "a", instances, partOf: (name) => ({ name }), logger });
  return { others, forgotten, warnings };
}

test("asks all others, and leaves out and forgets who does not answer; who has stopped is no fault", async () => {
  const { others, forgotten, warnings } = openOthers(new Set(["a", "b", "c", "d"]));
  const ask = async ({ name }: Part) => {
    if (name === "b") throw new Error("away");
    return name === "d" ? refuse("unavailable", "nobody serves d", { reason: "SERVICE_UNAVAILABLE" }) : name;
  };
  expect(await others.askAll(new AbortController().signal, ask)).toEqual(["c"]);
  expect(forgotten).toEqual(["b", "d"]);
  expect(warnings).toEqual(["the instance b does not answer: away"]);
});

test("follows those that come later, and again who comes back; its own end forgets nobody", async () => {
  const there = new Set(["a", "b"]);
  const { others, forgotten } = openOthers(there);
  const end = new AbortController();
  const followed: string[] = [];
  const goes = Promise.withResolvers<void>();
  const follow = async ({ name }: Part, begun: () => void) => {
    followed.push(name);
    begun();
    if (followed.length === 1) return goes.promise;
    await new Promise((_, reject) => end.signal.addEventListener("abort", () => reject(end.signal.reason)));
  };
  await others.follow(end.signal, follow);
  expect(followed).toEqual(["b"]);
  goes.resolve();
  there.add("c");
  await until(() => followed.length === 3, { timeoutMs: 5_000 });
  expect(followed.toSorted()).toEqual(["b", "b", "c"]);
  expect(forgotten).toEqual(["b"]);
  end.abort();
  await new Promise(setImmediate);
  expect(forgotten).toEqual(["b"]);
});

test("begins without who does not tell within two seconds, and ends at once with its signal", async () => {
  const { others } = openOthers(new Set(["b"]));
  const silent = () => new Promise<void>(() => {});
  const begunAt = performance.now();
  await others.follow(new AbortController().signal, silent);
  expect(performance.now() - begunAt).toBeGreaterThan(1_900);
  await others.follow(AbortSignal.abort(), silent);
});

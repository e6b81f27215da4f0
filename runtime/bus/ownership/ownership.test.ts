import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { ownerEntries } from "./entries/entry.ts";
import { keyFromToken, tokenFromKey } from "./entries/names.ts";
import { instanceService } from "./ownership.ts";
import { openThings, Thing, type Things } from "./testing/things.ts";

let bus: TestBus;
beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

describe("owning", () => {
  test("one of eight instances opens a key that all ask for at once, and the others are sent to it", async () => {
    const buses = [bus, await bus.connect(), await bus.connect(), await bus.connect()];
    await using stack = new AsyncDisposableStack();
    const all: Things[] = [];
    for (let index = 0; index < 8; index++) all.push(stack.use(await openThings(buses[index % 4]!, `race-${index}`)));
    for (let round = 0; round < 10; round++) {
      const found = await Promise.all(all.map((things) => things.acquire(`round-${round}`, "a")));
      const winners = found.flatMap(({ kind }, index) => (kind === "here" ? [`race-${index}`] : []));
      expect(winners).toHaveLength(1);
      for (const one of found) if (one.kind === "there") expect(one.instance).toBe(winners[0]);
    }
  });

  test("many callers of one process share one opening", async () => {
    let openings = 0;
    const open = async () => {
      openings += 1;
      return new Thing("join", "");
    };
    await using things = await openThings(bus, "join", { open });
    const found = await Promise.all(Array.from({ length: 20 }, () => things.acquire("joined", "")));
    expect(new Set(found.map((one) => one.kind === "here" && one.resource)).size).toBe(1);
    expect(openings).toBe(1);
  });

  test("an owner that is still opening answers so, and callers elsewhere are sent to it at once", async () => {
    const gate = Promise.withResolvers<Thing>();
    const begun = Promise.withResolvers<void>();
    const open = () => {
      begun.resolve();
      return gate.promise;
    };
    await using slow = await openThings(bus, "slow", { open });
    await using other = await openThings(await bus.connect(), "other");
    const here = slow.acquire("gated", "");
    await begun.promise;
    expect(await other.acquire("gated", "")).toEqual({ kind: "there", instance: "slow" });
    gate.resolve(new Thing("slow", ""));
    expect((await here).kind).toBe("here");
  });

  test("a failure to open reaches all who wait, gives the key back, and the next one may try", async () => {
    let isBroken = true;
    const open = async () => {
      if (isBroken) throw new Error("no such thing");
      return new Thing("broken", "");
    };
    await using things = await openThings(bus, "broken", { open });
    const failed = await Promise.allSettled([things.acquire("brittle", ""), things.acquire("brittle", "")]);
    expect(failed.map((one) => one.status)).toEqual(["rejected", "rejected"]);
    isBroken = false;
    expect((await things.acquire("brittle", "")).kind).toBe("here");
  });

  test("a released key is closed before anybody else opens it", async () => {
    await using first = await openThings(bus, "first");
    await using second = await openThings(await bus.connect(), "second");
    const here = await first.acquire("passed", "");
    const resource = here.kind === "here" ? here.resource : undefined;
    expect((await second.acquire("passed", "")).kind).toBe("there");
    const releasing = first.release("passed");
    const next = await second.acquire("passed", "");
    expect(next.kind).toBe("here");
    expect(resource?.isClosed).toBe(true);
    await releasing;
    expect(await first.acquire("passed", "")).toEqual({ kind: "there", instance: "second" });
    await second.release("passed");
    expect(await ownerEntries(bus, "thing").read("passed")).toBeUndefined();
  });

  test("disposing gives all keys back", async () => {
    const things = await openThings(bus, "leaving");
    await Promise.all(["l1", "l2", "l3"].map((key) => things.acquire(key, "")));
    await things[Symbol.asyncDispose]();
    for (const key of ["l1", "l2", "l3"]) expect(await ownerEntries(bus, "thing").read(key)).toBeUndefined();
    await expect(things.acquire("l1", "")).rejects.toMatchObject({ code: "unavailable" });
  });

  test("keys may hold any characters, and no two share a subject", async () => {
    await using things = await openThings(bus, "names");
    const keys = ["a/b c.*>", "a", "=YQ", "ключ", ""];
    for (const key of keys) {
      expect((await things.acquire(key, key)).kind).toBe("here");
      expect(keyFromToken(tokenFromKey(key))).toBe(key);
    }
    expect(new Set(keys.map(tokenFromKey)).size).toBe(keys.length);
  });

  test("an instance has a bus name of its own, and a name that cannot stand in a subject is refused", () => {
    expect(instanceService("mcp-bridge", "b7")).toBe("mcp-bridge.b7");
    expect(() => instanceService("mcp-bridge", "a.b")).toThrow(/letters/);
  });
});

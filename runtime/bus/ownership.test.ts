import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../test/harness/bus.ts";
import { until } from "../time/until.ts";
import type { Bus } from "./bus.ts";
import { listTokens, readEntry, writeEntry } from "./ownership/entry.ts";
import { keyFromToken, ownerSubject, tokenFromKey } from "./ownership/names.ts";
import { openPinging } from "./ownership/ping.ts";
import { sweepOnce } from "./ownership/sweeping.ts";
import { instanceService, type Ownership, openOwnership } from "./ownership.ts";

class Thing implements AsyncDisposable {
  isClosed = false;
  readonly owner: string;
  readonly argument: string;
  constructor(owner: string, argument: string) {
    this.owner = owner;
    this.argument = argument;
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.isClosed = true;
  }
}

let bus: TestBus;
beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

type Things = Ownership<Thing, string>;

const openThings = (
  on: Bus,
  instance: string,
  more: { open?: (key: string) => Promise<Thing> } = {},
): Promise<Things> =>
  openOwnership<Thing, string>(on, {
    kind: "thing",
    instance,
    open: async (_key, argument) => new Thing(instance, argument),
    ...more,
  });

/** A child process that owns, with what it has told so far. */
async function openOwnerProcess(server: TestBus["server"], instance: string) {
  const { url, user, password } = server;
  const script = fileURLToPath(new URL("./ownership/owner.fixture.ts", import.meta.url));
  const child = fork(script, [JSON.stringify({ url, user, password, instance })], { execArgv: [] });
  const told: string[] = [];
  child.on("message", ({ event, key }: { event: string; key: string }) => told.push(`${event} ${key}`.trim()));
  const heard = (line: string) => until(() => told.includes(line), { timeoutMs: 10_000, what: `${instance}: ${line}` });
  await heard("ready");
  return {
    told,
    heard,
    send: (message: { acquire?: string; owned?: string }) => child.send(message),
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

describe("owning", () => {
  test("one of eight instances opens a key that all ask for at once, and the others are sent to it", async () => {
    const buses = [bus, await bus.connect(), await bus.connect(), await bus.connect()];
    await using stack = new AsyncDisposableStack();
    const all: Things[] = [];
    for (let index = 0; index < 8; index++) all.push(stack.use(await openThings(buses[index % 4]!, `race-${index}`)));
    for (let round = 0; round < 10; round++) {
      const found = await Promise.all(all.map((things) => things.acquire(`round-${round}`, "a")));
      const winners = all.filter((_, index) => found[index]?.kind === "here");
      expect(winners).toHaveLength(1);
      for (const one of found) if (one.kind === "there") expect(one.instance).toBe(winners[0]?.instance);
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
    await using slow = await openThings(bus, "slow", { open: () => gate.promise });
    await using other = await openThings(await bus.connect(), "other");
    const here = slow.acquire("gated", "");
    await until(() => slow.keys().includes("gated"));
    expect(await other.acquire("gated", "")).toEqual({ kind: "there", instance: "slow" });
    expect(slow.owned("gated")).toBeUndefined();
    gate.resolve(new Thing("slow", ""));
    expect((await here).kind).toBe("here");
    expect(slow.owned("gated")).toBeInstanceOf(Thing);
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
    expect(await first.locate("passed")).toEqual({ kind: "there", instance: "second" });
    await second.release("passed");
    expect(await first.locate("passed")).toEqual({ kind: "nobody" });
  });

  test("disposing gives all keys back", async () => {
    const things = await openThings(bus, "leaving");
    await Promise.all(["l1", "l2", "l3"].map((key) => things.acquire(key, "")));
    await things[Symbol.asyncDispose]();
    for (const key of ["l1", "l2", "l3"]) expect(await readEntry(bus, { kind: "thing", key })).toBeUndefined();
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
    expect(instanceService("mcp-bridge", "b7")).toBe("mcp-bridge-b7");
    expect(() => instanceService("mcp-bridge", "a.b")).toThrow(/letters/);
  });
});

describe("taking over", () => {
  test("a dead owner's key is taken over at once by one of many", async () => {
    await using dead = await openOwnerProcess(bus.server, "dead");
    dead.send({ acquire: "orphan" });
    await dead.heard("here orphan");
    await using stack = new AsyncDisposableStack();
    const heirs = await Promise.all(
      ["h1", "h2", "h3", "h4"].map(async (name) => stack.use(await openThings(await bus.connect(), name))),
    );
    for (const heir of heirs) expect(await heir.acquire("orphan", "")).toEqual({ kind: "there", instance: "dead" });
    dead.kill("SIGKILL");
    await until(async () => (await heirs[0]!.locate("orphan")).kind === "nobody", { timeoutMs: 500 });
    const startedAt = performance.now();
    const found = await Promise.all(heirs.map((heir) => heir.acquire("orphan", "")));
    expect(performance.now() - startedAt).toBeLessThan(800);
    expect(found.filter((one) => one.kind === "here")).toHaveLength(1);
  });

  test("a frozen owner's key is taken over after a second; when it returns it closes and answers nothing", async () => {
    await using frozen = await openOwnerProcess(bus.server, "frozen");
    frozen.send({ acquire: "cold" });
    await frozen.heard("here cold");
    const entry = (await readEntry(bus, { kind: "thing", key: "cold" }))!;
    await using heir = await openThings(bus, "heir");
    const formerSubject = ownerSubject("thing", "cold", entry.revision);
    const answers = () =>
      bus.connection.request(formerSubject, "ping", { timeout: 100 }).then(
        () => true,
        () => false,
      );
    expect(await answers()).toBe(true);
    frozen.kill("SIGSTOP");
    await until(async () => !(await answers()), { what: "the process to be stopped" });
    const startedAt = performance.now();
    expect((await heir.acquire("cold", "")).kind).toBe("here");
    expect(performance.now() - startedAt).toBeGreaterThan(900);
    expect(performance.now() - startedAt).toBeLessThan(3_000);

    const heard: string[] = [];
    const inbox = "toolbus.test.answers";
    bus.connection.subscribe(inbox, { callback: (_error, message) => void heard.push(message.string()) });
    bus.connection.publish(formerSubject, "ping", { reply: inbox }); // waits for the frozen process at its door
    await bus.connection.flush();
    frozen.send({ owned: "cold" });
    frozen.kill("SIGCONT");
    await frozen.heard("closed cold");
    expect(frozen.told).toContain("lost cold");
    await frozen.heard("not owned cold");
    expect(frozen.told).not.toContain("owned cold");
    expect(await answers()).toBe(false);
    expect(heard).toEqual([]);
    frozen.send({ acquire: "cold" });
    await frozen.heard("there cold");
    expect(heir.owned("cold")).toBeInstanceOf(Thing);
  });

  test("an owner whose entry was written over hears of it, closes, and frees nothing of its successor", async () => {
    await using things = await openThings(bus, "robbed");
    const here = await things.acquire("taken", "");
    const { revision } = (await readEntry(bus, { kind: "thing", key: "taken" }))!;
    const next = await writeEntry(bus, { kind: "thing", key: "taken" }, "robber", revision);
    bus.connection.publish(ownerSubject("thing", "taken", revision), "taken");
    await until(() => here.kind === "here" && here.resource.isClosed);
    expect(things.owned("taken")).toBeUndefined();
    await things.release("taken");
    expect((await readEntry(bus, { kind: "thing", key: "taken" }))?.revision).toBe(next);
  });

  test("a takeover on a revision that no longer stands is refused", async () => {
    const at = { kind: "thing", key: "fenced" };
    const first = await writeEntry(bus, at, "a", undefined);
    const second = await writeEntry(bus, at, "b", first);
    expect(second).toBeGreaterThan(first!);
    expect(await writeEntry(bus, at, "c", first)).toBeUndefined();
    expect(await writeEntry(bus, at, "d", undefined)).toBeUndefined();
    expect((await readEntry(bus, at))?.instance).toBe("b");
  });

  test("entries of owners that are gone are swept, those of the living stay", async () => {
    await using things = await openThings(bus, "living");
    await things.acquire("alive", "");
    const sweeper = await bus.connect();
    await writeEntry(bus, { kind: "thing", key: "ghost" }, "nobody", undefined);
    using pinging = openPinging(sweeper, "thing", 1_000);
    const options = { bus: sweeper, kind: "thing", pinging, isHeld: () => false };
    await sweepOnce(options, AbortSignal.timeout(10_000));
    const tokens = await listTokens(bus, "thing");
    expect(tokens).toContain("alive");
    expect(tokens).not.toContain("ghost");
  });
});

test("a server that is killed and started again takes no key from a living owner", async () => {
  await using local = await openTestBus();
  await using owner = await openThings(local, "steady");
  await using other = await openThings(await local.connect(), "eager");
  const here = await owner.acquire("kept", "");
  for (let kill = 0; kill < 5; kill++) {
    await local.server.kill();
    await local.server.restart();
    expect(await other.acquire("kept", "")).toEqual({ kind: "there", instance: "steady" });
  }
  expect(here.kind === "here" && here.resource.isClosed).toBe(false);
  await until(() => owner.owned("kept") !== undefined);
});

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { tickedMs } from "../../../time/testing/machine-time.ts";
import { until } from "../../../time/until.ts";
import { listTokens, readEntry, writeEntry } from "../entries/entry.ts";
import { ownerSubject } from "../entries/names.ts";
import { createPing } from "../entries/ping.ts";
import { sweepOnce } from "../entries/sweeping.ts";
import { openOwnerProcess, openThings, Thing } from "./things.ts";

let bus: TestBus;
beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

describe("taking over", () => {
  test("a dead owner's key is taken over at once by one of many", async () => {
    await using dead = await openOwnerProcess(bus.server, "dead");
    dead.send({ acquire: "orphan" });
    await dead.heard("here orphan");
    await using stack = new AsyncDisposableStack();
    const heirs = await Promise.all(
      ["h1", "h2", "h3", "h4"].map(async (name) =>
        stack.use(await openThings(await bus.connect(), name, { silenceMs: 8_000 })),
      ),
    );
    for (const heir of heirs) expect(await heir.acquire("orphan", "")).toEqual({ kind: "there", instance: "dead" });
    dead.kill("SIGKILL");
    const entry = (await readEntry(bus, { kind: "thing", key: "orphan" }))!;
    const ping = createPing(bus, "thing", 8_000);
    await until(async () => (await ping("orphan", entry)) === "gone");
    const startedAt = tickedMs();
    const found = await Promise.all(heirs.map((heir) => heir.acquire("orphan", "")));
    expect(tickedMs() - startedAt, "no silence was waited for").toBeLessThan(7_000);
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
    const [startedAt, startedTicks] = [performance.now(), tickedMs()];
    expect((await heir.acquire("cold", "")).kind).toBe("here");
    expect(performance.now() - startedAt).toBeGreaterThan(900);
    expect(tickedMs() - startedTicks).toBeLessThan(3_000);

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
    const ping = createPing(sweeper, "thing", 1_000);
    const options = { bus: sweeper, kind: "thing", ping, isHeld: () => false };
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

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { tickedMs } from "../../../time/testing/machine-time.ts";
import { until } from "../../../time/until.ts";
import { ownerEntries } from "../entries/entry.ts";
import { ownerSubject } from "../entries/names.ts";
import { createPing } from "../entries/ping.ts";
import { sweepOnce } from "../entries/sweeping.ts";
import { openOwnerProcess, openThings } from "./things.ts";

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
    const entry = (await ownerEntries(bus, "thing").read("orphan"))!;
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
    const entry = (await ownerEntries(bus, "thing").read("cold"))!;
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
    frozen.send({ acquire: "cold" }); // which it reads when it returns, before it can know
    frozen.kill("SIGCONT");
    await frozen.heard("closed cold");
    await frozen.heard("there cold");
    expect(frozen.told.filter((line) => line === "here cold")).toHaveLength(1);
    expect(await answers()).toBe(false);
    expect(heard).toEqual([]);
    expect((await heir.acquire("cold", "")).kind).toBe("here");
  });

  test("an owner whose entry was written over hears of it, closes, and frees nothing of its successor", async () => {
    await using things = await openThings(bus, "robbed");
    const here = await things.acquire("taken", "");
    const { revision } = (await ownerEntries(bus, "thing").read("taken"))!;
    const next = await ownerEntries(bus, "thing").replace("taken", { instance: "robber" }, revision);
    bus.connection.publish(ownerSubject("thing", "taken", revision), "taken");
    await until(() => here.kind === "here" && here.resource.isClosed);
    await things.release("taken");
    expect((await ownerEntries(bus, "thing").read("taken"))?.revision).toBe(next);
  });

  test("entries of owners that are gone are swept, those of the living stay", async () => {
    await using things = await openThings(bus, "living");
    await things.acquire("alive", "");
    const sweeper = await bus.connect();
    await ownerEntries(bus, "thing").create("ghost", { instance: "nobody" });
    const ping = createPing(sweeper, "thing", 1_000);
    const options = { bus: sweeper, kind: "thing", ping, isHeld: () => false };
    await sweepOnce(options, AbortSignal.timeout(10_000));
    const tokens = await ownerEntries(bus, "thing").keys();
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
  expect(await owner.acquire("kept", "")).toEqual(here);
});

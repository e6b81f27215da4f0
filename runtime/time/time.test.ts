import { getEventListeners } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { delay } from "./delay.ts";
import { openEnding } from "./ending.ts";
import { createBackoff } from "./retry/backoff.ts";
import { createManualClock } from "./testing/manual-clock.ts";
import { unlessAborted } from "./unless-aborted.ts";
import { until } from "./until.ts";

describe("until", () => {
  test("gives the first truthy value", async () => {
    let asked = 0;
    expect(await until(() => ++asked === 3 && "three", { intervalMs: 1 })).toBe("three");
    expect(asked).toBe(3);
  });

  test("names what it waited for and how long", async () => {
    const waiting = until(() => false, { timeoutMs: 20, intervalMs: 1, what: "the moon to rise" });
    await expect(waiting).rejects.toThrow(/waited \d+ ms for the moon to rise/);
  });

  test("asks less often the longer it waits", async () => {
    let asked = 0;
    await expect(until(() => ++asked < 0, { timeoutMs: 400 })).rejects.toThrow("did not come about");
    expect(asked).toBeLessThan(40); // every 5 ms, it were twice as many
  });

  test("asks for the last time when its time is over, however long it is to the next question", async () => {
    const waiting = until(() => false, { timeoutMs: 20, intervalMs: 100_000 });
    await expect(waiting).rejects.toThrow("did not come about");
  });

  test("gives up on a condition that hangs", async () => {
    const waiting = until(() => new Promise<boolean>(() => {}), { timeoutMs: 20, what: "a hanging condition" });
    await expect(waiting).rejects.toThrow("a hanging condition");
  });

  test("ends with the error of its condition", async () => {
    const waiting = until(() => Promise.reject(new Error("broken")));
    await expect(waiting).rejects.toThrow("broken");
  });

  test("ends with the signal's reason, in the middle of a hanging condition too", async () => {
    const controller = new AbortController();
    const waiting = until(() => new Promise<boolean>(() => {}), { signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });
});

describe("delay", () => {
  test("rejects with the reason of a signal that aborted before or during it", async () => {
    await expect(delay(60_000, AbortSignal.abort(new Error("before")))).rejects.toThrow("before");
    const controller = new AbortController();
    const waiting = delay(60_000, controller.signal);
    controller.abort(new Error("during"));
    await expect(waiting).rejects.toThrow("during");
  });
});

describe("createBackoff", () => {
  test("grows to its maximum and starts again after a reset", () => {
    const backoff = createBackoff({ initialMs: 100, maxMs: 500, jitter: 0 });
    expect([backoff.next(), backoff.next(), backoff.next(), backoff.next(), backoff.next()]).toEqual([
      100, 200, 400, 500, 500,
    ]);
    backoff.reset();
    expect(backoff.next()).toBe(100);
  });

  test("takes up to its share of randomness off", () => {
    const backoff = createBackoff({ initialMs: 100, maxMs: 100, jitter: 0.5, random: () => 0.5 });
    expect(backoff.next()).toBe(75);
  });
});

describe("createManualClock", () => {
  test("wakes sleepers in the order of their times, and those that they start within the same span", async () => {
    const clock = createManualClock(1_000);
    const woken: string[] = [];
    void clock.delay(30).then(() => woken.push(`late at ${clock.now()}`));
    void clock.delay(10).then(async () => {
      woken.push(`early at ${clock.now()}`);
      await clock.delay(10);
      woken.push(`again at ${clock.now()}`);
    });
    await clock.advance(40);
    expect(woken).toEqual(["early at 1010", "again at 1020", "late at 1030"]);
    expect(clock.now()).toBe(1_040);
  });

  test("an aborted delay rejects and is no longer counted", async () => {
    const clock = createManualClock();
    const controller = new AbortController();
    const waiting = clock.delay(10, controller.signal);
    expect(clock.sleeping).toBe(1);
    controller.abort(new Error("stop"));
    await expect(waiting).rejects.toThrow("stop");
    expect(clock.sleeping).toBe(0);
  });
});

test("an abort from before goes before a promise that has resolved", async () => {
  const aborted = AbortSignal.abort(new Error("before"));
  await expect(unlessAborted(Promise.resolve("late"), undefined, aborted)).rejects.toThrow("before");
});

test("unlessAborted takes no notice of a promise that fails after the signal had aborted: unhandled, that would end the run", async () => {
  const signal = AbortSignal.abort(new Error("before"));
  await expect(unlessAborted(Promise.reject(new Error("late")), signal)).rejects.toThrow("before");
  await delay(5);
});

test("a wait whose time is over ends at once, and Node warns of nothing", async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on("warning", onWarning);
  await delay(-5);
  await new Promise(setImmediate);
  process.off("warning", onWarning);
  expect(warnings).toEqual([]);
});

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

describe("an ending", () => {
  test("aborts with the reason of the source that aborts first, once", () => {
    const [one, other] = [new AbortController(), new AbortController()];
    using ending = openEnding(one.signal, undefined, other.signal);
    let count = 0;
    ending.signal.addEventListener("abort", () => {
      count += 1;
    });
    expect(ending.signal.aborted).toBe(false);
    other.abort("second");
    one.abort("first");
    expect([ending.signal.reason, count]).toEqual(["second", 1]);
  });

  test("of a source that has aborted has aborted; of none never does, unless it is told to", () => {
    using late = openEnding(new AbortController().signal, AbortSignal.abort("before"));
    expect(late.signal.reason).toBe("before");
    using told = openEnding();
    expect(told.signal.aborted).toBe(false);
    told.end("told");
    expect(told.signal.reason).toBe("told");
  });

  test("that is told no reason ends as a controller that is aborted without one", () => {
    const controller = new AbortController();
    controller.abort();
    using ending = openEnding();
    ending.end();
    const { name, message } = ending.signal.reason;
    expect([name, message]).toEqual([controller.signal.reason.name, controller.signal.reason.message]);
  });

  test("leaves nothing at a source that lives on, whether it is disposed, is told to end or another source aborted", () => {
    const [process, call] = [new AbortController(), new AbortController()];
    openEnding(process.signal, call.signal)[Symbol.dispose]();
    const ending = openEnding(process.signal, call.signal);
    expect(getEventListeners(process.signal, "abort")).toHaveLength(1);
    call.abort();
    expect(ending.signal.aborted).toBe(true);
    expect(getEventListeners(process.signal, "abort")).toEqual([]);
    openEnding(process.signal).end();
    expect(getEventListeners(process.signal, "abort")).toEqual([]);
  });

  test("LOOP-15 reaches whoever waits for it, a chain of them too, though nobody holds it and memory was collected meanwhile", async () => {
    const sources = Array.from({ length: 200 }, () => new AbortController());
    let reached = 0;
    for (const { signal } of sources) {
      const inner = openEnding(signal, new AbortController().signal);
      const outer = openEnding(inner.signal, new AbortController().signal);
      outer.signal.addEventListener("abort", () => {
        reached += 1;
      });
    }
    await new Promise(setImmediate);
    collectGarbage();
    await new Promise(setImmediate);
    collectGarbage();
    for (const source of sources) source.abort();
    await until(() => reached === sources.length, { what: "all to be told" });
  });
});

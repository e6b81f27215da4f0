import { getEventListeners } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { openEnding } from "./ending.ts";
import { until } from "./until.ts";

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

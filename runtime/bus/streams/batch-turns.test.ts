import { expect, test, vi } from "vitest";
import { Failure } from "../../failure/failure.ts";
import { withPrincipal } from "../../rpc/identity.ts";
import type { Bus } from "../bus.ts";
import { readSubject } from "./read.ts";

function delay<T>(ms: number, value?: T): Promise<T | undefined> {
  return new Promise((resolve) => setTimeout(resolve, ms, value));
}

/** A bus that answers each batch with one message after so long, or never. */
function busOf(answerMs: number, patienceMs = Number.POSITIVE_INFINITY) {
  const state = { begun: 0, underWay: 0, most: 0 };
  async function* batch(subject: string) {
    await delay(answerMs);
    state.underWay -= 1;
    yield { subject, seq: 1, data: new Uint8Array(), time: new Date() };
  }
  const getBatch = async (_: string, query: { next_by_subj: string }) => {
    state.begun += 1;
    state.underWay += 1;
    state.most = Math.max(state.most, state.underWay);
    return answerMs === Number.POSITIVE_INFINITY ? neverAnswered() : batch(query.next_by_subj);
  };
  const givenUp = (what: string) => new Failure("unavailable", what, { reason: "BUS_UNAVAILABLE" });
  const link = { isUp: true, down: new AbortController().signal, storage: { patienceMs, givenUp } };
  return { state, bus: { link, manager: { direct: { getBatch } } } as unknown as Bus };
}

async function* neverAnswered() {
  await new Promise(() => {});
  yield {};
}

function read(bus: Bus, subject: string, signal?: AbortSignal) {
  return Array.fromAsync(readSubject(bus, subject, { toSequence: 1, signal }));
}

/** As many readers as there may be batches, and more, of each of the streams whose leaders are lost. */
async function withLost(streams: readonly string[], work: () => Promise<unknown>) {
  const stop = new AbortController();
  const { bus } = busOf(Number.POSITIVE_INFINITY);
  const lost = streams.flatMap((stream) =>
    Array.from({ length: 20 }, (_, n) => read(bus, `toolbus.${stream}.lost-${n}`, stop.signal)),
  );
  const ended = Promise.allSettled(lost);
  try {
    await work();
  } finally {
    stop.abort();
    await ended;
  }
}

test("SEC-5 who begins many reads at once keeps another's read waiting for a few of them", async () => {
  const { bus, state } = busOf(10);
  const ended: string[] = [];
  const reading = (principal: string) =>
    withPrincipal(principal, () => read(bus, "toolbus.run.one")).then(() => ended.push(principal));
  await Promise.all([...Array.from({ length: 60 }, () => reading("mallory")), reading("alice")]);
  expect(ended.indexOf("alice")).toBeLessThan(9);
  expect(state.most).toBeLessThanOrEqual(4);
});

test.each([[["run"]], [["run", "space", "inbox"]]])(
  "BUS-6 while the leaders of %j are lost, their readers do not keep those of another stream from reading",
  async (streams) => {
    await withLost(streams, async () => {
      const { bus } = busOf(1);
      const others = read(bus, "toolbus.audit.tool-router.permitted");
      expect(await Promise.race([others, delay(1_000, "still waiting")])).toHaveLength(1);
    });
    expect(await read(busOf(1).bus, "toolbus.run.one"), "their places are free again").toHaveLength(1);
  },
);

test("BUS-6 a call waits for its turn to read no longer than for the bus, and then leaves it to others", async () => {
  await withLost(["run"], async () => {
    const { bus, state } = busOf(1, 100);
    const others = read(bus, "toolbus.run.one").catch((error: unknown) => error);
    expect(await Promise.race([others, delay(1_000, "still waiting")])).toMatchObject({ reason: "BUS_UNAVAILABLE" });
    expect(state.most).toBe(0);
  });
});

test("BUS-6 what a service reads by itself waits for its turn as long as it takes, and has its whole time then", async () => {
  vi.useFakeTimers();
  try {
    const { bus, state } = busOf(9_000);
    const reads = Promise.all(Array.from({ length: 12 }, () => read(bus, "toolbus.run.one")));
    await vi.advanceTimersByTimeAsync(28_000);
    expect(await reads).toHaveLength(12);
    expect(state.begun, "none was given up and begun again").toBe(12);
  } finally {
    vi.useRealTimers();
  }
});

import { create } from "@bufbuild/protobuf";
import { expect, test, vi } from "vitest";
import { ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { ToolProgressSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type CallEvent, type Executed, JoinedCall, JoinedCalls } from "./joined-calls.ts";

const noSignal = new AbortController().signal;

const result = (outputJson = "1"): Executed => ({
  case: "result",
  value: create(ProvidedResultSchema, { outputJson }),
});
const progressOf = (progress: number): CallEvent => ({
  case: "progress",
  value: create(ToolProgressSchema, { progress }),
});

function openCalls({ maxRetained = 100, maxRetainedLength = 1_000_000 } = {}) {
  const calls = new JoinedCalls<JoinedCall>({ maxRetained, maxRetainedLength });
  const counts = { executed: 0 };
  const join = (key: string, work: (call: JoinedCall) => Promise<Executed>, signal = noSignal) => {
    const counted = (call: JoinedCall) => {
      counts.executed += 1;
      return work(call);
    };
    return (calls.find(key) ?? calls.start(key, new JoinedCall(), counted)).read(signal);
  };
  const run = (key: string, outputJson?: string) => Array.fromAsync(join(key, async () => result(outputJson)));
  return { join, run, counts };
}

test("the oldest results are forgotten when they are too many", async () => {
  const { run, counts } = openCalls({ maxRetained: 2 });
  for (const key of ["a", "b", "c", "c"]) await run(key);
  expect(counts.executed).toBe(3);
  await run("a");
  expect(counts.executed).toBe(4);
});

test("the oldest results are forgotten when they are too long together, and one that is too long at once and alone", async () => {
  const { run, counts } = openCalls({ maxRetainedLength: 2_500 });
  for (const key of ["a", "b", "b", "a"]) await run(key, "x".repeat(1_500));
  expect(counts.executed).toBe(3);
  for (const key of ["long", "long", "a"]) await run(key, "x".repeat(2_501));
  expect(counts.executed).toBe(5);
});

test("what was told has a length, also without a text", async () => {
  const { join, counts } = openCalls({ maxRetainedLength: 10_000 });
  const work = async (call: JoinedCall) => {
    for (let progress = 0; progress < 100; progress++) call.tell(progressOf(progress));
    return result();
  };
  for (const key of ["a", "a"]) await Array.fromAsync(join(key, work));
  expect(counts.executed).toBe(2);
});

test("a result is kept for a minute", async () => {
  vi.useFakeTimers();
  try {
    const { run, counts } = openCalls();
    await run("a");
    vi.advanceTimersByTime(59_000);
    await run("a");
    expect(counts.executed).toBe(1);
    vi.advanceTimersByTime(1_001);
    await run("a");
    expect(counts.executed).toBe(2);
    vi.advanceTimersByTime(200_000);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test("who comes later sees what was told before, while the call runs and when it has ended", async () => {
  const { join, counts } = openCalls();
  const gate = Promise.withResolvers<void>();
  const work = async (call: JoinedCall) => {
    call.tell(progressOf(1));
    await gate.promise;
    return result();
  };
  const first = join("a", work);
  expect((await first.next()).value?.case).toBe("progress");
  const second = Array.fromAsync(join("a", work), (event) => event.case);
  gate.resolve();
  const third = async () => Array.fromAsync(join("a", work), (event) => event.case);
  expect(await second).toEqual(["progress", "result"]);
  expect((await first.next()).value?.case).toBe("result");
  expect(await third()).toEqual(["progress", "result"]);
  expect(counts.executed).toBe(1);
});

test("LOOP-15 a call goes on while one of its readers stays, and is abandoned with the last", async () => {
  const { join, counts } = openCalls();
  const signals: AbortSignal[] = [];
  const gate = Promise.withResolvers<void>();
  const work = async ({ signal }: JoinedCall) => {
    signals.push(signal);
    await gate.promise;
    return result();
  };
  const [one, other] = [new AbortController(), new AbortController()];
  const leaves = join("a", work, one.signal).next();
  const stays = join("a", work, other.signal).next();
  one.abort(new Error("left"));
  await expect(leaves).rejects.toThrow("left");
  expect(signals[0]?.aborted).toBe(false);
  other.abort(new Error("left too"));
  await expect(stays).rejects.toThrow("left too");
  expect(signals[0]?.reason).toMatchObject({ code: "canceled", reason: "CANCELED" });
  const again = join("a", work).next();
  expect(counts.executed).toBe(2);
  gate.resolve();
  expect((await again).value?.case).toBe("result");
  await Array.fromAsync(join("a", work));
  expect(counts.executed).toBe(2);
});

test("a failure is told to all readers, and not kept", async () => {
  const { join, run, counts } = openCalls();
  const work = async (): Promise<Executed> => {
    throw new Error("no luck");
  };
  const readers = [join("a", work).next(), join("a", work).next()];
  for (const reader of readers) await expect(reader).rejects.toThrow("no luck");
  expect(counts.executed).toBe(1);
  await run("a");
  expect(counts.executed).toBe(2);
});

test("one who reads slowly is told the last of the events, and the result always", async () => {
  const { join } = openCalls();
  const work = async (call: JoinedCall) => {
    for (let progress = 0; progress < 10_000; progress++) call.tell(progressOf(progress));
    return result();
  };
  const seen = await Array.fromAsync(join("a", work));
  expect(seen).toHaveLength(257);
  expect(seen.at(-2)).toMatchObject({ case: "progress", value: { progress: 9_999 } });
  expect(seen.at(-1)?.case).toBe("result");
});

test("what was told is kept up to 1 MiB for one who reads slowly", async () => {
  const call = new JoinedCall(1_000);
  const message = "x".repeat(10_000);
  for (let progress = 0; progress < 1_000; progress++)
    call.tell({ case: "progress", value: create(ToolProgressSchema, { progress, message }) });
  expect(call.end({ last: result() })).toBeLessThan(2 ** 20 + 1_000);
  const seen = await Array.fromAsync(call.read(noSignal));
  expect(seen).toHaveLength(103);
  expect(seen.at(-2)).toMatchObject({ case: "progress", value: { progress: 999 } });
});

import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { callPatience } from "../../bus/link/call-patience.ts";
import { shrinkStore } from "../../bus/testing/shrink-store.ts";
import type { Failure } from "../../failure/failure.ts";
import { delay } from "../../time/delay.ts";
import { createManualClock } from "../../time/testing/manual-clock.ts";
import { until } from "../../time/until.ts";
import { openResultsWithQuota } from "./quota.ts";
import { createResultRemoval } from "./removal.ts";
import { createResultStore, type ResultStore } from "./store.ts";

let bus: TestBus;
let results: ResultStore;
beforeAll(async () => {
  bus = await openTestBus();
  results = createResultStore(bus);
});
afterAll(() => bus[Symbol.asyncDispose]());

const never = new AbortController().signal;
const whole = JSON.stringify("é".repeat(500_000));

async function textFrom(reference: string, offset: number): Promise<Buffer> {
  const found = await results.find(reference);
  return Buffer.concat(await Array.fromAsync(results.read(found!, offset, never)));
}

test("LOOP-8 a stored result is read from any byte on, in pieces that fit into a message, and has its digest", async () => {
  const reference = await results.put("s", whole);
  const bytes = Buffer.from(whole);
  const sha256 = createHash("sha256").update(bytes).digest();
  expect(await results.find(reference)).toMatchObject({ reference, sessionId: "s", bytes: bytes.length });
  expect(Buffer.from((await results.find(reference))!.sha256)).toEqual(sha256);
  for (const offset of [0, 1, 131_071, 131_072, 131_073, 900_000, bytes.length]) {
    expect((await textFrom(reference, offset)).equals(bytes.subarray(offset)), `${offset}`).toBe(true);
  }
  for await (const piece of results.read((await results.find(reference))!, 0, never))
    expect(piece.length).toBeLessThanOrEqual(262_144);
});

test("LOOP-8 a result is stored and found although the server is away meanwhile", async () => {
  await using local = await openTestBus();
  const there = createResultStore(local);
  await local.server.kill();
  const storing = there.put("s", whole);
  await local.server.restart();
  const reference = await storing;
  await local.server.kill();
  const finding = there.find(reference);
  await local.server.restart();
  expect(await finding).toMatchObject({ reference, bytes: Buffer.byteLength(whole) });
});

test("LOOP-8 a result that is stored slowly is not given up, though its call has waited before", async () => {
  const slow: typeof bus = {
    ...bus,
    async objectStore(name) {
      const store = await bus.objectStore(name);
      const putBlob: typeof store.putBlob = async (...given) => {
        await delay(2_500);
        return store.putBlob(...given);
      };
      return Object.assign(Object.create(store), { putBlob });
    },
  };
  const reference = await callPatience.run(() => {
    callPatience.spend(performance.now() - 6_000);
    return createResultStore(slow).put("slow", whole);
  });
  expect(await results.find(reference)).toMatchObject({ reference });
});

test("LOOP-8 two sessions have the same result each for itself, and what is no reference finds nothing", async () => {
  const [mine, theirs] = [await results.put("mine", "1"), await results.put("theirs", "1")];
  expect(mine).not.toBe(theirs);
  expect(await results.put("mine", "1")).toBe(mine);
  for (const other of ["", "mine", "mine.sha256-0", mine.replace("mine", "another")])
    expect(await results.find(other)).toBeUndefined();
});

test("LOOP-8 a result that is removed leaves nothing, and one that goes while it is read is told as gone", async () => {
  const removal = createResultRemoval(bus);
  const reference = await results.put("gone", whole);
  const found = (await results.find(reference))!;
  expect((await removal.list()).map((result) => result.reference)).toContain(reference);
  await removal.remove(found);
  expect(await results.find(reference)).toBeUndefined();
  const { state } = await bus.manager.streams.info("OBJ_toolbus_results", { subjects_filter: ">" });
  expect(Object.keys(state.subjects ?? {}).filter((subject) => subject.includes(found.nuid))).toEqual([]);
  await expect(Array.fromAsync(results.read(found, 0, never))).rejects.toMatchObject({ code: "not_found" });
});

test("LOOP-8 what a process left that died while it stored a result goes after an hour, and no result with it", async () => {
  const kept = await results.put("kept", whole);
  await bus.jetstream.publish("$O.toolbus_results.C.cutoff", new Uint8Array(1_000));
  const clock = createManualClock(Date.now());
  const removal = createResultRemoval(bus, clock);
  expect(await removal.removeCutOff()).toBe(0);
  await clock.advance(3_700_000);
  expect(await removal.removeCutOff()).toBe(1);
  expect((await textFrom(kept, 0)).length).toBe(Buffer.byteLength(whole));
});

test("SEC-6 of a principal that has its share of all results none is kept while room is short, and of others they are", async () => {
  await using own = await openTestBus();
  await shrinkStore(own, "OBJ_toolbus_results", 5 * 2 ** 20);
  const findPrincipal = async (sessionId: string) => ({ hers: "alice", his: "mallory" })[sessionId];
  const faults: string[] = [];
  await using shared = openResultsWithQuota(own, {
    findPrincipal,
    onFault: (fault) => faults.push(fault),
    everyMs: 20,
  });
  const text = (n: number) => JSON.stringify(`${n}`.padEnd(500_000, "x"));
  await shared.put("hers", text(0));
  for (let n = 0; n < 6; n++) await shared.put("his", text(n));
  const refused = await until(
    () =>
      shared.put("his", text(6)).then(
        () => undefined,
        (error: Failure) => error,
      ),
    {
      timeoutMs: 10_000,
    },
  );
  expect(refused).toMatchObject({ code: "resource_exhausted", reason: "SHARE_EXCEEDED" });
  expect(refused.message).toMatch(
    /^"mallory" has its share of OBJ_toolbus_results: \d+ bytes of results; wait until .*TOOLBUS_RUN_RETENTION/,
  );
  expect(faults).toEqual(["OBJ_toolbus_results has no more room for mallory"]);
  await shared.put("hers", text(7));
  const removal = createResultRemoval(own);
  for (const stored of await removal.list()) if (stored.sessionId === "his") await removal.remove(stored);
  await until(
    () =>
      shared.put("his", text(8)).then(
        () => true,
        () => undefined,
      ),
    { timeoutMs: 10_000 },
  );
});

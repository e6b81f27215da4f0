import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { until } from "../../../time/until.ts";
import { jsonCodec } from "../bucket.ts";
import { createBucket } from "../stored-bucket.ts";
import { BucketView, openBucketView } from "./bucket-view.ts";

const codec = jsonCodec((value) => {
  if (typeof value !== "number") throw new TypeError("it is no number");
  return value;
});
const placeOf = (prefix: string) => ({ bucket: "toolbus_tools", prefix, codec }) as const;

let bus: TestBus;
const faults: string[] = [];
const onFault = (fault: string) => void faults.push(fault);

beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

test("a view holds what stood when it was opened, and every acknowledged write once it has caught up", async () => {
  const [bucket, other] = [createBucket(bus, placeOf("one.")), createBucket(bus, placeOf("two."))];
  await bucket.put("b", 2);
  await other.put("b", 9);
  await using followed = await openBucketView(bucket, onFault);
  const { view } = followed;
  const known = () => view.entries.map(([key, { value }]) => [key, value]);
  expect(known()).toEqual([["b", 2]]);
  const elsewhere = createBucket(await bus.connect(), placeOf("one."));
  const [version, changes] = [view.version, { count: 0 }];
  using _ = view.changes.listen(() => void changes.count++);
  const changed = view.changes.next().happened;
  await elsewhere.put("a", 1);
  await elsewhere.remove("b");
  await followed.caughtUp();
  await changed;
  expect(known()).toEqual([["a", 1]]);
  expect([view.version > version, changes.count]).toEqual([true, 2]);
  expect(view.reachedRevision).toBe(await bucket.lastRevision());
});

test("SEC-5 who waits for a revision is woken by that one alone", async () => {
  const view = new BucketView<number>();
  const { signal } = new AbortController();
  const waits = vi.spyOn(signal, "addEventListener");
  const reached = view.reached(9, signal);
  for (let revision = 1; revision <= 9; revision += 1) {
    view.apply({ kind: "set", key: "a", value: 1, revision });
    await new Promise(setImmediate);
  }
  await reached;
  expect(waits).toHaveBeenCalledTimes(1);
});

test("a value that cannot be read leaves the one before it in the view, and keeps nobody waiting", async () => {
  const bucket = createBucket(bus, placeOf("three."));
  await bucket.put("a", 1);
  await using followed = await openBucketView(bucket, onFault);
  await bus.jetstream.publish("$KV.toolbus_tools.three.a", "garbage");
  await followed.caughtUp();
  expect(followed.view.get("a")?.value).toBe(1);
  await bucket.put("a", 3);
  await followed.caughtUp();
  expect(followed.view.get("a")?.value).toBe(3);
});

test("a removal while the bus was away is seen afterwards, also when no message of it is left", async () => {
  await using local = await openTestBus();
  const bucket = createBucket(local, placeOf("four."));
  for (const key of ["kept", "removed", "replaced"]) await bucket.put(key, 1);
  await using followed = await openBucketView(bucket, onFault);
  const writer = createBucket(await local.connect(), placeOf("four."));
  // what is left of a removal a minute later: nothing
  for (const key of ["removed", "replaced"]) {
    await local.manager.streams.purge("KV_toolbus_tools", { filter: `$KV.toolbus_tools.four.${key}` });
  }
  const lost = new Promise<void>((resolve) => void local.link.onLoss(resolve));
  await local.connection.reconnect();
  await writer.put("replaced", 2);
  await lost;
  await local.link.whenUp();
  await followed.caughtUp();
  expect(followed.view.entries.map(([key, { value }]) => [key, value])).toEqual([
    ["kept", 1],
    ["replaced", 2],
  ]);
});

test("a comparison after an interruption that fails is made again, and is told; readers wait meanwhile", async () => {
  await using local = await openTestBus();
  const bucket = createBucket(local, placeOf("six."));
  await bucket.put("a", 1);
  const told: string[] = [];
  let failures = 0;
  const keys = async () => {
    if (failures++ < 2) throw new Error("not now");
    return bucket.keys();
  };
  await using followed = await openBucketView({ ...bucket, keys }, (fault) => void told.push(fault));
  await local.manager.streams.purge("KV_toolbus_tools", { filter: "$KV.toolbus_tools.six.a" });
  const lost = new Promise<void>((resolve) => void local.link.onLoss(resolve));
  await local.connection.reconnect();
  await lost;
  await until(() => failures > 0);
  await followed.caughtUp();
  expect(followed.view.entries).toEqual([]);
  expect(told).toEqual(Array(2).fill("toolbus_tools six. cannot be compared: not now"));
});

test("a view waits for no removal whose message has gone before it was seen", async () => {
  const bucket = createBucket(bus, placeOf("gone."));
  await bucket.put("a", 1);
  let readings = 0;
  const lastRevision = async () => (await bucket.lastRevision()) + (readings++ % 2 === 0 ? 1 : 0); // of what is gone a moment later
  await using followed = await openBucketView({ ...bucket, lastRevision }, onFault);
  await followed.caughtUp();
  expect(followed.view.get("a")?.value).toBe(1);
  expect(readings).toBe(4);
});

test("a view that is closed lets go of those who wait for it", async () => {
  await using local = await openTestBus();
  const followed = await openBucketView(createBucket(local, placeOf("five.")), onFault);
  await local.server.kill();
  const waiting = followed.caughtUp();
  waiting.catch(() => {});
  const impatient = followed.caughtUp(AbortSignal.timeout(50));
  await expect(impatient).rejects.toThrow(/timeout/);
  await followed[Symbol.asyncDispose]();
  await expect(waiting).rejects.toThrow(/followed no longer/);
  expect(faults).toEqual([]);
});

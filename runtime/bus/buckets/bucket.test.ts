import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { CallerDeclarationSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { refuse } from "../../failure/failure.ts";
import { withPrincipal } from "../../rpc/identity.ts";
import { until } from "../../time/until.ts";
import type { BusStatus } from "../bus.ts";
import { type Change, type Codec, codecOf } from "./bucket.ts";
import { createBucket } from "./stored-bucket.ts";

const numbers: Codec<number> = {
  encode: (value) => new TextEncoder().encode(JSON.stringify(value)),
  decode(bytes) {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof value !== "number") throw new TypeError("it is no number");
    return value;
  },
};
const place = { bucket: "toolbus_callers", prefix: "count.", codec: numbers } as const;

let bus: TestBus;
const statuses: BusStatus[] = [];

beforeAll(async () => {
  bus = await openTestBus({ onStatus: (status) => statuses.push(status) });
});
afterAll(() => bus[Symbol.asyncDispose]());

test("SEC-5 a principal has one list at a time, since each is held whole, and keeps nobody else from theirs", async () => {
  const bucket = createBucket(bus, { ...place, prefix: "held." });
  await Promise.all(Array.from({ length: 300 }, (_, n) => bucket.create(`n${n}`, n)));
  const seen: string[] = [];
  const list = (name: string) =>
    withPrincipal(name.slice(0, -1), () =>
      Array.fromAsync(bucket.list({ where: () => (seen.at(-1) === name ? true : seen.push(name) > 0) })),
    );
  const lists = await Promise.all(["mallory1", "mallory2", "mallory3", "alice1"].map(list));
  expect(lists.map(({ length }) => length)).toEqual([300, 300, 300, 300]);
  expect(seen.filter((name) => name !== "alice1").filter((name, n, all) => name !== all[n - 1])).toEqual([
    "mallory1",
    "mallory2",
    "mallory3",
  ]);
  expect(seen.indexOf("alice1")).toBeLessThan(seen.indexOf("mallory2"));
});

describe("compare-and-set", () => {
  test("a key is created once, changed from what stands, removed, and created again", async () => {
    const bucket = createBucket(bus, place);
    const first = await bucket.create("a", 1);
    expect(first).toBeGreaterThan(0);
    expect(await bucket.create("a", 2)).toBeUndefined();
    const changed = await bucket.update("a", (value = 0, revision) => (revision === first ? value + 2 : undefined));
    expect(changed).toMatchObject({ before: 1, value: 3, hasChanged: true });
    const kept = await bucket.update("a", (_, revision) => (revision === first ? 9 : undefined));
    expect(kept).toEqual({ before: 3, value: 3, revision: changed.revision, hasChanged: false });
    expect(await bucket.remove("a", (value) => value === 1)).toBe(false);
    expect(await bucket.remove("a", (value, revision) => value === 3 && revision === changed.revision)).toBe(true);
    expect(await bucket.remove("a")).toBe(false);
    expect(await bucket.read("a")).toBeUndefined();
    expect(
      await bucket.update("a", (value, revision) => (value === undefined && revision === 0 ? 5 : 6)),
    ).toMatchObject({
      value: 5,
    });
    await bucket.remove("a");
    const anew = (await bucket.create("a", 7))!;
    const replaced = await bucket.replace("a", 8, anew);
    expect(replaced).toBeGreaterThan(anew);
    expect(await bucket.replace("a", 9, anew)).toBeUndefined();
    expect(await bucket.remove("a", anew)).toBe(false);
    expect(await bucket.remove("a", replaced)).toBe(true);
    await bucket.create("a", 7);
    const put = await bucket.put("a", 8);
    expect(await bucket.read("a")).toEqual({ key: "a", value: 8, revision: put, writtenAt: expect.any(Date) });
  });

  test("a key that was never written is created and put without a reading", async () => {
    const bucket = createBucket(bus, { ...place, prefix: "new." });
    using reads = vi.spyOn(bus.manager.streams, "getMessage");
    await bucket.create("created", 1);
    await bucket.put("put", 1);
    expect(reads).not.toHaveBeenCalled();
  });

  test("a key that is a pattern of others is refused, and finds nothing of theirs", async () => {
    const bucket = createBucket(bus, { ...place, prefix: "pattern." });
    await bucket.put("a.b", 1);
    for (const key of ["*", ">", "a.*", "a.>", "a.b*", "", ".", "a.", ".b", "a..b", "a b", "a.b\r\nPUB x"]) {
      const refused = { code: "invalid_argument", reason: "INVALID_REQUEST" };
      await expect(bucket.read(key), key).rejects.toMatchObject(refused);
      await expect(bucket.create(key, 2), key).rejects.toMatchObject(refused);
      await expect(bucket.put(key, 2), key).rejects.toMatchObject(refused);
      await expect(
        bucket.update(key, () => 2),
        key,
      ).rejects.toMatchObject(refused);
      await expect(bucket.remove(key), key).rejects.toMatchObject(refused);
    }
    expect(await Array.fromAsync(bucket.list())).toMatchObject([{ key: "a.b", value: 1 }]);
    await bucket.put("tr:7=/_-", 3);
    expect(await bucket.read("tr:7=/_-")).toMatchObject({ value: 3 });
  });

  test("a refusal of the decision is the answer, and nothing is written", async () => {
    const bucket = createBucket(bus, place);
    const revision = await bucket.create("refused", 1);
    const update = bucket.update("refused", () => refuse("aborted", "not so", { reason: "CALL_IN_PROGRESS" }));
    await expect(update).rejects.toMatchObject({ code: "aborted", message: "not so" });
    expect(await bucket.read("refused")).toMatchObject({ value: 1, revision });
  });

  test("no update of 20 that race is lost, also when the server is killed meanwhile", async () => {
    await using local = await openTestBus();
    const bucket = createBucket(local, place);
    const add = () => bucket.update("sum", (value = 0) => value + 1);
    const first = await Promise.all(Array.from({ length: 10 }, add));
    await local.server.kill();
    const racing = Promise.all(Array.from({ length: 10 }, add));
    await local.server.restart();
    const values = [...first, ...(await racing)].map(({ value = 0 }) => value).sort((one, other) => one - other);
    expect(values).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });

  test("a value that is empty, as a message of defaults is, is a value", async () => {
    const bucket = createBucket(bus, { ...place, prefix: "empty.", codec: codecOf(CallerDeclarationSchema) });
    await bucket.create("e", create(CallerDeclarationSchema));
    expect(await bucket.read("e")).toMatchObject({ value: { callerId: "" } });
    expect(await Array.fromAsync(bucket.list())).toMatchObject([{ key: "e" }]);
  });
});

describe("records of others", () => {
  test("ORCH-1 what a newer release wrote beside a value stays in it when it is written again here", async () => {
    const bucket = createBucket(bus, { ...place, prefix: "newer.", codec: codecOf(CallerDeclarationSchema) });
    const bytes = toBinary(CallerDeclarationSchema, create(CallerDeclarationSchema, { callerId: "app" }));
    const newer = new BinaryWriter().raw(bytes).tag(1_000, WireType.LengthDelimited).string("newer").finish();
    await bus.jetstream.publish("$KV.toolbus_callers.newer.n", newer);
    await bucket.update("n", (standing) => standing && { ...standing, callerId: "other" });
    const [written] = await Array.fromAsync(bucket.list());
    expect(written?.value.callerId).toBe("other");
    const again = fromBinary(CallerDeclarationSchema, toBinary(CallerDeclarationSchema, written!.value));
    expect(again.$unknown).toMatchObject([{ no: 1_000 }]);
  });

  test("ORCH-1 a value that cannot be read is passed over by lists, told once, and not written over unasked", async () => {
    const bucket = createBucket(bus, { ...place, prefix: "odd." });
    await bus.jetstream.publish("$KV.toolbus_callers.odd.broken", "garbage");
    await bucket.create("good", 1);
    for (let round = 0; round < 2; round++) {
      expect((await Array.fromAsync(bucket.list())).map(({ key }) => key)).toEqual(["good"]);
    }
    const told = statuses.filter((one) => one.kind === "unreadable" && one.subject.endsWith("odd.broken"));
    expect(told).toHaveLength(1);
    const lost = { code: "data_loss", message: expect.stringContaining("odd.broken") };
    await expect(bucket.read("broken")).rejects.toMatchObject(lost);
    await expect(bucket.update("broken", () => 1)).rejects.toMatchObject(lost);
    expect(await bucket.create("broken", 1)).toBeUndefined();
    expect([...(await bucket.keys())].sort()).toEqual(["broken", "good"]);
    await bucket.put("broken", 2);
    expect(await bucket.read("broken")).toMatchObject({ value: 2 });
  });

  test("where a value that cannot be read stands for nothing, it reads as none and is written over", async () => {
    const bucket = createBucket(bus, { ...place, prefix: "hint.", unreadable: "absent" });
    await bus.jetstream.publish("$KV.toolbus_callers.hint.h", "garbage");
    expect(await bucket.read("h")).toBeUndefined();
    expect(await bucket.remove("h", () => true)).toBe(false);
    expect(await bucket.update("h", (value = 40) => value + 2)).toMatchObject({ before: undefined, value: 42 });
    await bus.jetstream.publish("$KV.toolbus_callers.hint.h", "garbage");
    expect(await bucket.remove("h")).toBe(true);
    expect(await bucket.keys()).toEqual(new Set());
  });
});

describe("lists", () => {
  test("a list has the last value of each key of its kind, or those that are asked for", async () => {
    const bucket = createBucket(bus, { bucket: "toolbus_tools", prefix: "list.", codec: numbers });
    const other = createBucket(bus, { bucket: "toolbus_tools", prefix: "other.", codec: numbers });
    for (const [key, value] of Object.entries({ a: 1, b: 2, c: 3, d: 4 })) await bucket.put(key, value);
    await other.put("a", 99);
    await bucket.put("a", 10);
    await bucket.remove("b");
    const listed = async (part?: Parameters<typeof bucket.list>[0]) =>
      Object.fromEntries((await Array.fromAsync(bucket.list(part))).map(({ key, value }) => [key, value]));
    expect(await listed()).toEqual({ a: 10, c: 3, d: 4 });
    expect(await listed({ where: (value) => value < 4 })).toEqual({ c: 3 });
    expect(await bucket.keys()).toEqual(new Set(["a", "c", "d"]));
  });

  test("SEC-5 a bucket of many is listed by a consumer, since the server counts for each batch what is left", async () => {
    const bucket = createBucket(bus, { bucket: "toolbus_memory", prefix: "", codec: numbers });
    const keys = Array.from({ length: 1_200 }, (_, n) => `k${n}`);
    await Promise.all(keys.map((key) => bucket.put(key, 1)));
    const batches = vi.spyOn(bus.manager.direct, "getBatch");
    expect((await Array.fromAsync(bucket.list(), ({ key }) => key)).toSorted()).toEqual(keys.toSorted());
    expect(batches).not.toHaveBeenCalled();
    await bucket.remove("k1199"); // the last of those that stand is not the last that was written
    expect(await bucket.keys()).toEqual(new Set(keys.slice(0, -1)));
    batches.mockRestore();
    expect((await bus.manager.consumers.list("KV_toolbus_memory").next()).length).toBe(0);
  });

  test("a list has a key that is written anew while the others are read, where one value of it is kept", async () => {
    const bucket = createBucket(bus, { ...place, prefix: "moved." });
    for (const key of ["a", "b", "c"]) await bucket.put(key, 1);
    let value = 1;
    const { direct } = bus.manager;
    const getBatch: typeof direct.getBatch = async (...args) => {
      if (value < 3) await bucket.put("a", ++value); // after the list has seen how far it goes
      return direct.getBatch(...args);
    };
    const manager = Object.create(bus.manager, {
      direct: { value: Object.assign(Object.create(direct), { getBatch }) },
    });
    const slow = createBucket({ ...bus, manager }, { ...place, prefix: "moved." });
    const listed = await Array.fromAsync(slow.list());
    expect(listed.map((one) => [one.key, one.value]).sort()).toEqual([
      ["a", 3],
      ["b", 1],
      ["c", 1],
    ]);
    value = 2;
    expect(await slow.keys()).toEqual(new Set(["a", "b", "c"]));
  });
});

describe("following", () => {
  test("BUS-1 what stands and then each change, once and in order, though the server is killed meanwhile", async () => {
    await using local = await openTestBus();
    await using stopping = new AsyncDisposableStack();
    const bucket = createBucket(local, place);
    const end = new AbortController();
    stopping.defer(() => end.abort());
    await bucket.put("a", 1);
    const changes: Change<number>[] = [];
    const following = (async () => {
      for await (const change of bucket.follow({ signal: end.signal })) changes.push(change);
    })();
    await until(() => changes.length === 1);
    await local.server.kill();
    const writing = bucket.put("b", 2);
    await local.server.restart();
    await writing;
    await local.jetstream.publish("$KV.toolbus_callers.count.c", "garbage");
    await bucket.remove("a");
    await until(() => changes.length === 4);
    expect(changes.map(({ kind, key }) => `${kind} ${key}`)).toEqual(["set a", "set b", "unreadable c", "removed a"]);
    expect(await bucket.lastRevision()).toBe(changes.at(-1)?.revision);
    const revisions = changes.map(({ revision }) => revision);
    expect(revisions).toEqual(revisions.toSorted((one, other) => one - other));
    end.abort();
    await following;
  });
});

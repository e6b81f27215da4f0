import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { casUpdate, compareAndSet, createKey, readKey, removeKey } from "./key-value.ts";

let bus: TestBus;

beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

describe("compare-and-set", () => {
  const bucket = "toolbus_callers";

  test("creates a key once, writes on the revision read, and removes likewise", async () => {
    const created = await createKey(bus, { bucket, key: "a", value: "1" });
    expect(created.kind).toBe("set");
    expect(await createKey(bus, { bucket, key: "a", value: "2" })).toEqual({ kind: "conflict" });
    const { revision } = created as { revision: number };
    const set = await compareAndSet(bus, { bucket, key: "a", revision, value: "3" });
    expect(await compareAndSet(bus, { bucket, key: "a", revision, value: "4" })).toEqual({ kind: "conflict" });
    expect((await readKey(bus, bucket, "a"))?.string()).toBe("3");
    expect(await removeKey(bus, { bucket, key: "a", revision })).toBe(false);
    expect(await removeKey(bus, { bucket, key: "a", revision: (set as { revision: number }).revision })).toBe(true);
    expect(await readKey(bus, bucket, "a")).toBeUndefined();
    expect((await createKey(bus, { bucket, key: "a", value: "5" })).kind).toBe("set");
  });

  test("loses no update of 20 that race, also when the server is killed meanwhile", async () => {
    await using local = await openTestBus();
    const add = () =>
      casUpdate(local, bucket, "list", (entry) => {
        const list = entry?.json<number[]>() ?? [];
        return { set: JSON.stringify([...list, list.length]), result: list.length };
      });
    const first = await Promise.all(Array.from({ length: 10 }, add));
    await local.server.kill();
    const racing = Promise.all(Array.from({ length: 10 }, add));
    await local.server.restart();
    const results = [...first, ...(await racing)].map(({ result }) => result).sort((a, b) => a - b);
    expect(results).toEqual(Array.from({ length: 20 }, (_, index) => index));
    expect((await readKey(local, bucket, "list"))?.json()).toHaveLength(20);
  });
});

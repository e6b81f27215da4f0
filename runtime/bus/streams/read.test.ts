import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { withPrincipal } from "../../rpc/identity.ts";
import { appendMany, text, textsOf } from "../testing/texts.ts";
import { appendFenced } from "./append/append.ts";
import { lastSequenceOf, readSubject } from "./read.ts";

let bus: TestBus;

beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

describe("reading a subject", () => {
  test("gives its messages only, in order, from a sequence on, over several batches", async () => {
    const other = appendMany(bus, "toolbus.run.read-b", 300);
    const sequences = await appendMany(bus, "toolbus.run.read-a", 600);
    await other;
    expect(await textsOf(bus, "toolbus.run.read-a")).toEqual(Array.from({ length: 600 }, (_, index) => `${index}`));
    const tail: string[] = [];
    const from = { fromSequence: sequences[590]! };
    for await (const message of readSubject(bus, "toolbus.run.read-a", from)) tail.push(text(message));
    expect(tail).toEqual(["590", "591", "592", "593", "594", "595", "596", "597", "598", "599"]);
    expect(await textsOf(bus, "toolbus.run.nothing")).toEqual([]);
  });

  test("ends with its signal, though more has been read ahead", async () => {
    await appendMany(bus, "toolbus.run.read-g", 3);
    const end = new AbortController();
    const messages = readSubject(bus, "toolbus.run.read-g", { signal: end.signal });
    await messages.next();
    end.abort(new Error("enough"));
    await expect(messages.next()).rejects.toThrow("enough");
  });

  test("SEC-5 all of a store is read without a filter, whose matches the server counts again for each batch", async () => {
    const [runs, values] = ["toolbus.run.", "$KV.toolbus_tools."];
    await appendMany(bus, `${runs}read-e`, 2);
    for (const subject of [`${values}tool.a`, `${values}pin.b`]) await appendMany(bus, subject, 1);
    const filters: unknown[] = [];
    const { direct } = bus.manager;
    const getBatch: typeof direct.getBatch = (stream, query) => {
      filters.push("next_by_subj" in query && query.next_by_subj);
      return direct.getBatch(stream, query);
    };
    const spied = Object.assign(Object.create(direct), { getBatch });
    const manager = Object.create(bus.manager, { direct: { value: spied } });
    const count = async (subject: string) => (await Array.fromAsync(readSubject({ ...bus, manager }, subject))).length;
    expect(await count(`${values}>`)).toBe(2);
    expect(await count(`${values}tool.>`)).toBe(1);
    expect(await count(`${runs}read-e`)).toBe(2);
    expect(await count(`${runs}>`)).toBeGreaterThanOrEqual(2);
    expect(filters.filter((filter, n) => filter !== filters[n - 1])).toEqual([
      ">",
      `${values}tool.>`,
      `${runs}read-e`,
      ">",
    ]);
  });

  test("asks for what is there while it asks how far that reaches", async () => {
    const [subject, isThere] = ["toolbus.run.read-f", true];
    await appendMany(bus, subject, 2);
    const { direct, streams } = bus.manager;
    const asked = Promise.withResolvers<void>();
    const getMessage: typeof streams.getMessage = async (...about) => {
      await asked.promise;
      return streams.getMessage(...about);
    };
    const getBatch: typeof direct.getBatch = async (...about) => {
      const batch = await direct.getBatch(...about);
      asked.resolve();
      return batch;
    };
    const manager = Object.create(bus.manager, {
      direct: { value: Object.assign(Object.create(direct), { getBatch }) },
      streams: { value: Object.assign(Object.create(streams), { getMessage }) },
    });
    expect((await Array.fromAsync(readSubject({ ...bus, manager }, subject, { isThere }))).map(text)).toEqual([
      "0",
      "1",
    ]);
    expect(await Array.fromAsync(readSubject(bus, "toolbus.run.nothing", { isThere }))).toEqual([]);
  });

  test("SEC-5 who reads much at once does not cost the connection, and keeps nobody else from reading", async () => {
    const subject = "toolbus.run.read-c";
    const payload = new Uint8Array(500_000);
    for (let count = 0; count < 20; count += 1)
      await appendFenced(bus, { subject, payload, expectedLastSequence: await lastSequenceOf(bus, subject) });
    await appendMany(bus, "toolbus.run.read-d", 1);
    const cuts: string[] = [];
    const following = bus.connection.status();
    void (async () => {
      for await (const { type } of following) if (type === "disconnect") cuts.push(type);
    })();
    const read = async (name: string) => {
      let bytes = 0;
      for await (const { data } of readSubject(bus, `toolbus.run.${name}`)) bytes += data.length;
      return bytes;
    };
    const ended: string[] = [];
    const reads = Array.from({ length: 20 }, () => withPrincipal("mallory", () => read("read-c")));
    const mallorys = Promise.all(reads).then((bytes) => ended.push(String(bytes)));
    const alices = withPrincipal("alice", () => read("read-d")).then((bytes) => ended.push(String(bytes)));
    await Promise.all([mallorys, alices]);
    expect(ended).toEqual(["1", String(reads.map(() => 10_000_000))]);
    expect(cuts).toEqual([]);
  });
});

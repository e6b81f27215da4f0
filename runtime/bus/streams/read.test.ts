import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { until } from "../../time/until.ts";
import { appendMany, text, textsOf } from "../testing/texts.ts";
import { followSubject, readSubject } from "./read.ts";

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

  test("follows what comes, across a server that is killed, each message once, until its signal aborts", async () => {
    await using local = await openTestBus();
    const subject = "toolbus.run.follow";
    await appendMany(local, subject, 5);
    const end = new AbortController();
    const seen: string[] = [];
    const following = (async () => {
      for await (const message of followSubject(local, subject, { signal: end.signal })) seen.push(text(message));
    })();
    await until(() => seen.length === 5);
    await appendMany(local, subject, 5, 5);
    await until(() => seen.length === 10);
    await local.server.kill();
    await local.server.restart();
    await appendMany(local, subject, 5, 10);
    await until(() => seen.length === 15, { timeoutMs: 5_000, what: "the messages after the restart" });
    end.abort();
    await following;
    expect(seen).toEqual(Array.from({ length: 15 }, (_, index) => `${index}`));
  });

  test("leaves no consumer at the server when it ends, by its signal or by its reader", async () => {
    const subject = "toolbus.run.left";
    const consumers = async () => {
      const listed = await Array.fromAsync(bus.manager.consumers.list("TOOLBUS_RUNS"));
      return listed.filter(
        ({ config }) => config.filter_subjects?.includes(subject) || config.filter_subject === subject,
      );
    };
    await appendMany(bus, subject, 1);
    const end = new AbortController();
    for await (const _ of followSubject(bus, subject, { signal: end.signal })) {
      expect(await consumers()).toHaveLength(1);
      end.abort();
    }
    for await (const _ of followSubject(bus, subject)) break;
    const early = new AbortController(); // aborted while the consumer is being made
    const following = followSubject(bus, subject, { signal: early.signal }).next();
    early.abort();
    expect((await following).done).toBe(true);
    await until(async () => (await consumers()).length === 0, { what: "the consumers to be gone" });
  });
});

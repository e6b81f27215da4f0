import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../test/harness/bus.ts";
import type { Failure } from "../failure/failure.ts";
import { until } from "../time/until.ts";
import { type AppendOutcome, appendFenced, appendOnce } from "./append.ts";
import type { Bus } from "./bus.ts";
import { casUpdate, compareAndSet, createKey, readKey, removeKey } from "./key-value.ts";
import { followSubject, lastSequenceOf, readSubject, type StoredMessage } from "./read.ts";

let bus: TestBus;

beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

const text = (message: StoredMessage) => new TextDecoder().decode(message.data);

async function textsOf(subject: string, from: Bus = bus): Promise<string[]> {
  const texts: string[] = [];
  for await (const message of readSubject(from, subject)) texts.push(text(message));
  return texts;
}

/** Appends numbered messages one after another, each fenced by the one before. */
async function appendMany(to: Bus, subject: string, count: number, first = 0): Promise<number[]> {
  const sequences: number[] = [];
  let last = await lastSequenceOf(to, subject);
  for (let index = first; index < first + count; index++) {
    const outcome = await appendFenced(to, { subject, expectedLastSequence: last, payload: `${index}` });
    if (outcome.kind !== "appended") throw new Error(`refused at ${index}`);
    last = outcome.sequence;
    sequences.push(last);
  }
  return sequences;
}

describe("a fenced append", () => {
  test("is stored when it follows the last message, and refused when it does not", async () => {
    const subject = "toolbus.run.fence";
    const first = await appendFenced(bus, { subject, expectedLastSequence: 0, payload: "a" });
    expect(first.kind).toBe("appended");
    expect(await appendFenced(bus, { subject, expectedLastSequence: 0, payload: "b" })).toEqual({ kind: "conflict" });
    expect(await textsOf(subject)).toEqual(["a"]);
  });

  test("wins exactly once among 50 writers that follow the same message, round after round", async () => {
    const subject = "toolbus.run.race";
    const others = await Promise.all([bus.connect(), bus.connect(), bus.connect()]);
    const writers = [bus, ...others];
    let last = 0;
    for (let round = 0; round < 10; round++) {
      const race = Array.from({ length: 50 }, (_, index) => {
        const writer = writers[index % writers.length]!;
        return appendFenced(writer, { subject, expectedLastSequence: last, payload: `${round}/${index}` });
      });
      const won = (await Promise.all(race)).filter((outcome) => outcome.kind === "appended");
      expect(won).toHaveLength(1);
      last = (won[0] as { sequence: number }).sequence;
    }
    expect(await textsOf(subject)).toHaveLength(10);
  });

  test.each([
    ["toolbus.wake.large", 100 * 1024, 64 * 1024],
    ["toolbus.run.large", 1024 * 1024, 1024 * 1024],
    ["$KV.toolbus_agents.large", 4 * 1024 * 1024, 1024 * 1024],
  ])(
    "says at once that a message to %s is too large for its store, and how large it is",
    async (subject, size, limit) => {
      const payload = new Uint8Array(size);
      const tooLarge = {
        code: "invalid_argument",
        reason: "MESSAGE_TOO_LARGE",
        message: expect.stringMatching(`the message has \\d+ bytes, and its store takes ${limit} at most`),
      };
      const append = appendFenced(bus, { subject, expectedLastSequence: 0, payload, timeoutMs: 2_000 });
      await expect(append).rejects.toMatchObject(tooLarge);
      await expect(appendOnce(bus, { subject, payload, messageId: "m", timeoutMs: 2_000 })).rejects.toMatchObject(
        tooLarge,
      );
      expect(await lastSequenceOf(bus, subject)).toBe(0);
    },
  );

  test("takes a message that fills its store's limit to the byte, and measures what the client adds", async () => {
    const subject = "toolbus.run.fills";
    const append = (size: number) =>
      appendFenced(bus, { subject, expectedLastSequence: 0, payload: "x".repeat(size), timeoutMs: 2_000 });
    const refusal = await append(1024 * 1024).catch((error: Failure) => error);
    const over = Number((refusal as Failure).metadata?.bytes) - 1024 * 1024;
    await expect(append(1024 * 1024 - over + 1)).rejects.toMatchObject({ reason: "MESSAGE_TOO_LARGE" });
    expect((await append(1024 * 1024 - over)).kind).toBe("appended");
  });

  test("throws the program's own mistakes instead of repeating them", async () => {
    await expect(readKey(bus, "toolbus_callers", "no key at all")).rejects.toThrow("invalid key");
  });

  test("says that the store is full, and what was stored stands", async () => {
    await using full = await openTestBus();
    const { config } = await full.manager.streams.info("TOOLBUS_RUNS");
    await full.manager.streams.update("TOOLBUS_RUNS", { ...config, max_bytes: 4_096 });
    const subject = "toolbus.run.full";
    const { sequence } = (await appendFenced(full, {
      subject,
      expectedLastSequence: 0,
      payload: "x".repeat(3_000),
    })) as { sequence: number };
    const append = appendFenced(full, { subject, expectedLastSequence: sequence, payload: "x".repeat(3_000) });
    await expect(append).rejects.toMatchObject({ code: "resource_exhausted", reason: "STORE_FULL" });
    expect(await textsOf(subject, full)).toHaveLength(1);
  });
});

describe("a server that is killed and started again", () => {
  test("loses no acknowledged append of 50 writers, and each writer learns the outcome of each append", async () => {
    await using local = await openTestBus();
    const acknowledged = new Map<string, number[]>();
    let isOver = false;
    const write = async (index: number) => {
      const subject = `toolbus.run.writer-${index}`;
      const sequences: number[] = [];
      acknowledged.set(subject, sequences);
      let last = 0;
      while (!isOver) {
        const payload = `${sequences.length}`;
        const outcome: AppendOutcome = await appendFenced(local, { subject, expectedLastSequence: last, payload });
        expect(outcome.kind, "nobody else writes to the subject: a conflict is a wrong answer").toBe("appended");
        last = (outcome as { sequence: number }).sequence;
        sequences.push(last);
      }
    };
    const writers = Array.from({ length: 50 }, (_, index) => write(index));
    const total = () => [...acknowledged.values()].reduce((sum, sequences) => sum + sequences.length, 0);
    for (let kill = 0; kill < 3; kill++) {
      const before = total();
      await until(() => total() > before + 500, { timeoutMs: 10_000, what: "writers at work" });
      await local.server.kill();
      await local.server.restart();
    }
    const after = total();
    await until(() => total() > after + 200, { timeoutMs: 10_000, what: "writers at work again" });
    isOver = true;
    await Promise.all(writers);
    for (const [subject, sequences] of acknowledged) {
      const stored: StoredMessage[] = [];
      for await (const message of readSubject(local, subject)) stored.push(message);
      expect(stored.map((message) => message.sequence)).toEqual(sequences);
      expect(stored.map(text)).toEqual(sequences.map((_, index) => `${index}`));
    }
  });

  test("has stored once what is appended under one message id by several processes", async () => {
    await using local = await openTestBus();
    const other = await local.connect();
    const append = { subject: "toolbus.inbox.s1", payload: "news", messageId: "call-1" };
    const first = await appendOnce(local, append);
    await local.server.kill();
    const again = appendOnce(other, append);
    await local.server.restart();
    expect(await again).toEqual(first);
    expect(await textsOf("toolbus.inbox.s1", local)).toEqual(["news"]);
  });
});

describe("reading a subject", () => {
  test("gives its messages only, in order, from a sequence on, over several batches", async () => {
    const other = appendMany(bus, "toolbus.run.read-b", 300);
    const sequences = await appendMany(bus, "toolbus.run.read-a", 600);
    await other;
    expect(await textsOf("toolbus.run.read-a")).toEqual(Array.from({ length: 600 }, (_, index) => `${index}`));
    const tail: string[] = [];
    const from = { fromSequence: sequences[590]! };
    for await (const message of readSubject(bus, "toolbus.run.read-a", from)) tail.push(text(message));
    expect(tail).toEqual(["590", "591", "592", "593", "594", "595", "596", "597", "598", "599"]);
    expect(await textsOf("toolbus.run.nothing")).toEqual([]);
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
    await until(() => seen.length === 15, { timeoutMs: 2_000, what: "the messages after the restart" });
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

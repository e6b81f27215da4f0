import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import type { Failure } from "../../../failure/failure.ts";
import { until } from "../../../time/until.ts";
import { text, textsOf } from "../../testing/texts.ts";
import { lastSequenceOf, readSubject, type StoredMessage } from "../read.ts";
import { type AppendOutcome, appendFenced, appendOnce } from "./append.ts";

let bus: TestBus;

beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

describe("a fenced append", () => {
  test("is stored when it follows the last message, and refused when it does not", async () => {
    const subject = "toolbus.run.fence";
    const first = await appendFenced(bus, { subject, expectedLastSequence: 0, payload: "a" });
    expect(first.kind).toBe("appended");
    expect(await appendFenced(bus, { subject, expectedLastSequence: 0, payload: "b" })).toEqual({ kind: "conflict" });
    expect(await textsOf(bus, subject)).toEqual(["a"]);
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
    expect(await textsOf(bus, subject)).toHaveLength(10);
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
    await expect(lastSequenceOf(bus, "nowhere.at.all")).rejects.toThrow("no declared stream keeps nowhere.at.all");
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
    expect(await textsOf(full, subject)).toHaveLength(1);
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
    expect(await textsOf(local, "toolbus.inbox.s1")).toEqual(["news"]);
  });
});

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { delay } from "../../../time/delay.ts";
import { until } from "../../../time/until.ts";
import type { Bus } from "../../bus.ts";
import { appendMany, text } from "../../testing/texts.ts";
import { boundsOf, type StoredMessage } from "../read.ts";
import { followShared } from "./shared-follow.ts";

let bus: TestBus;

beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

const numbers = (count: number) => Array.from({ length: count }, (_, index) => `${index}`);

/** A follower, and what it has been given. */
async function openFollower(
  from: Bus,
  subject: string,
  { fromSequence, take = async () => {} }: { fromSequence?: number; take?: (message: StoredMessage) => Promise<void> },
) {
  const end = new AbortController();
  const seen: string[] = [];
  const { next } = await boundsOf(from, subject, end.signal);
  const follow = { from: fromSequence ?? next, openFrom: next, signal: end.signal };
  const following = (async () => {
    for await (const message of followShared(from, subject, follow)) {
      await take(message);
      seen.push(text(message));
    }
  })();
  return {
    ...{ seen, following },
    async end() {
      end.abort();
      await following;
    },
  };
}

const consumersOf = async (of: Bus, stream: string) => (await of.manager.streams.info(stream)).state.consumer_count;

describe("followers of one subject", () => {
  test("SEC-5 120 of them cost one delivery of a message, and the connection stays", { timeout: 30_000 }, async () => {
    await using local = await openTestBus();
    const subject = "toolbus.inbox.crowded";
    const cuts: string[] = [];
    const statuses = local.connection.status();
    void (async () => {
      for await (const { type } of statuses) if (type === "disconnect") cuts.push(type);
    })();
    await local.connection.request(subject, new Uint8Array(786_000)); // nobody wants what stands
    const before = local.connection.stats().inBytes;
    const followers = await Promise.all(Array.from({ length: 120 }, () => openFollower(local, subject, {})));
    await local.connection.request(subject, new Uint8Array(1));
    const allHave = (count: number) => () => followers.every(({ seen }) => seen.length === count);
    await until(allHave(1), { timeoutMs: 10_000, what: "all to follow" });
    await local.connection.request(subject, new Uint8Array(786_000));
    await until(allHave(2), { timeoutMs: 10_000, what: "the message at each follower" });
    expect(local.connection.stats().inBytes - before).toBeLessThan(1_000_000);
    expect([cuts, await consumersOf(local, "TOOLBUS_INBOX")]).toEqual([[], 1]);
    await Promise.all(followers.map((follower) => follower.end()));
  });

  test("shared-follow-2 each gets each message once and in order, wherever it joins, across a server that is killed or frozen", {
    timeout: 30_000,
  }, async () => {
    await using local = await openTestBus();
    const subject = "toolbus.run.shared";
    const sequences = await appendMany(local, subject, 20);
    const first = await openFollower(local, subject, { fromSequence: 1 });
    const later: { skipped: number; follower: Awaited<ReturnType<typeof openFollower>> }[] = [];
    const joining = (async () => {
      for (let n = 0; n < 30; n += 1) {
        const skipped = n % 20;
        const follower = await openFollower(local, subject, { fromSequence: sequences[skipped] ?? 0 });
        later.push({ skipped, follower });
        await delay(20);
      }
    })();
    await appendMany(local, subject, 100, 20);
    await local.server.kill();
    await local.server.restart();
    await appendMany(local, subject, 100, 120);
    process.kill(local.server.pid, "SIGSTOP");
    await delay(4_000); // longer than a consumer may be silent
    process.kill(local.server.pid, "SIGCONT");
    await appendMany(local, subject, 100, 220);
    await joining;
    const all = [{ skipped: 0, follower: first }, ...later];
    const isWhole = ({ skipped, follower }: (typeof all)[number]) => follower.seen.length >= 320 - skipped;
    await until(() => all.every(isWhole), { timeoutMs: 10_000, what: "all messages at each follower" });
    for (const { skipped, follower } of all) expect(follower.seen).toEqual(numbers(320).slice(skipped));
    await Promise.all(all.map(({ follower }) => follower.end()));
    await until(async () => (await consumersOf(local, "TOOLBUS_RUNS")) === 0, {
      timeoutMs: 10_000,
      what: "no consumer",
    });
  });

  test.each([
    ["told of", 3],
    ["given", 0],
  ])("shared-follow-3 one that joins is refused rather than miss what the first one was %s", async (_, before) => {
    const subject = `toolbus.run.lagging-${before}`;
    let lags = false;
    const info: Bus["manager"]["streams"]["info"] = async (...query) => {
      const { state, ...rest } = await bus.manager.streams.info(...query);
      return { ...rest, state: lags ? { ...state, last_seq: 0 } : state };
    };
    const streams = Object.assign(Object.create(bus.manager.streams), { info });
    const lagging: Bus = { ...bus, manager: Object.assign(Object.create(bus.manager), { streams }) };
    await appendMany(bus, subject, before);
    const first = await openFollower(lagging, subject, {});
    await appendMany(bus, subject, 3 - before, before);
    await until(() => first.seen.length === 3 - before);
    lags = true;
    const refused = await openFollower(lagging, subject, { fromSequence: 1 });
    await expect(refused.following).rejects.toMatchObject({ code: "unavailable" });
    lags = false;
    const second = await openFollower(lagging, subject, { fromSequence: 1 });
    await until(() => second.seen.length === 3);
    await Promise.all([first.end(), second.end()]);
  });

  test("shared-follow-4 one that does not read costs the others nothing, and gets all when it does", async () => {
    const subject = "toolbus.inbox.slow";
    const reads = Promise.withResolvers<void>();
    const slow = await openFollower(bus, subject, { take: () => reads.promise });
    const fast = await openFollower(bus, subject, {});
    const texts = Array.from({ length: 50 }, (_, n) => `${n}`.padEnd(20_000));
    for (const payload of texts) await bus.connection.request(subject, payload);
    await until(() => fast.seen.length === 50);
    expect(slow.seen).toEqual([]);
    reads.resolve();
    await until(() => slow.seen.length === 50);
    await bus.connection.request(subject, "last");
    await until(() => slow.seen.length === 51 && fast.seen.length === 51);
    for (const { seen } of [slow, fast]) expect(seen).toEqual([...texts, "last"]);
    await Promise.all([slow.end(), fast.end()]);
  });

  test("shared-follow-4 many that are slow read a burst once between them", { timeout: 30_000 }, async () => {
    const subject = "toolbus.run.burst";
    const take = () => delay(3);
    const all = await Promise.all(Array.from({ length: 40 }, () => openFollower(bus, subject, { take })));
    await delay(500); // until they follow
    const before = bus.connection.stats().inBytes;
    const payloads = Array.from({ length: 300 }, (_, n) => `${n}`.padEnd(2_000));
    await Promise.all(payloads.map((payload) => bus.connection.request(subject, payload)));
    await until(() => all.every(({ seen }) => seen.length === 300), { timeoutMs: 20_000, what: "the burst at each" });
    for (const { seen } of all) expect(seen).toEqual(payloads);
    expect(bus.connection.stats().inBytes - before).toBeLessThan(2_000_000); // 300 messages of 2 kB, and what acknowledges them
    await Promise.all(all.map((follower) => follower.end()));
  });

  test("shared-follow-1 end with their consumer, and whoever comes then has another one", async () => {
    await using local = await openTestBus();
    const subject = "toolbus.run.anew";
    await appendMany(local, subject, 5);
    const followers = await Promise.all([1, 2, 3].map(() => openFollower(local, subject, { fromSequence: 1 })));
    await until(() => followers.every(({ seen }) => seen.length === 5));
    const ended = Promise.allSettled(followers.map(({ following }) => following));
    const { config } = await local.manager.streams.info("TOOLBUS_RUNS");
    await local.manager.streams.delete("TOOLBUS_RUNS");
    await local.manager.streams.add(config);
    for (const outcome of await ended)
      expect(outcome).toMatchObject({ reason: { message: expect.stringMatching(/removed and made anew|not found/) } });
    await appendMany(local, subject, 2);
    const another = await openFollower(local, subject, { fromSequence: 1 });
    await appendMany(local, subject, 1, 2);
    await until(() => another.seen.length === 3);
    await another.end();
  });
});

import { JetStreamApiError } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { delay } from "../../../time/delay.ts";
import { until } from "../../../time/until.ts";
import { jsonCodec } from "../../buckets/bucket.ts";
import { createBucket } from "../../buckets/stored-bucket.ts";
import { openBucketView } from "../../buckets/views/bucket-view.ts";
import type { Bus } from "../../bus.ts";
import { callPatience } from "../../link/call-patience.ts";
import { appendMany, text } from "../../testing/texts.ts";
import { followSubject } from "./follow.ts";

let bus: TestBus;

beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

const consumersOf = async (subject: string) => {
  const listed = await Array.fromAsync(bus.manager.consumers.list("TOOLBUS_RUNS"));
  return listed.filter(({ config }) => config.filter_subject === subject).map(({ name }) => name);
};

/** The same bus, whose manager of consumers answers otherwise. */
function busWhere(answers: Partial<Bus["manager"]["consumers"]>): Bus {
  const consumers = Object.assign(Object.create(bus.manager.consumers), answers);
  return { ...bus, manager: Object.assign(Object.create(bus.manager), { consumers }) };
}

describe("following a subject", () => {
  test("gives what comes, across a server that is killed, each message once, until its signal aborts", async () => {
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

  test("SEC-5 who follows what is large does not cost the connection", { timeout: 15_000 }, async () => {
    await using local = await openTestBus();
    const payload = new Uint8Array(1_000_000);
    for (let n = 0; n < 100; n++) await local.connection.request("toolbus.run.large", payload);
    const cuts: string[] = [];
    const following = local.connection.status();
    void (async () => {
      for await (const { type } of following) if (type === "disconnect") cuts.push(type);
    })();
    let pending = 0;
    for await (const message of followSubject(local, "toolbus.run.large")) {
      pending = message.pending;
      if (pending === 0) break;
    }
    expect([pending, cuts]).toEqual([0, []]);
  });

  test("goes on where what is left of each request has no room for the next message", async () => {
    const subject = "toolbus.run.sizes";
    let seen = 0;
    let interruptions = 0;
    const end = new AbortController();
    const onInterrupted = () => void interruptions++;
    const following = (async () => {
      for await (const _ of followSubject(bus, subject, { signal: end.signal, onInterrupted })) seen += 1;
    })();
    for (const kilobytes of [600, 600, 700, 700, 700, 700, 700, 300, 300, 950, 950, 950]) {
      const before = seen;
      await bus.connection.request(subject, new Uint8Array(kilobytes * 1_000));
      await until(() => seen > before, { what: `a message of ${kilobytes} kB` });
    }
    expect(interruptions).toBe(0);
    end.abort();
    await following;
  });

  test("leaves no consumer at the server when it ends, by its signal or by its reader", async () => {
    const subject = "toolbus.run.left";
    await appendMany(bus, subject, 1);
    const end = new AbortController();
    for await (const _ of followSubject(bus, subject, { signal: end.signal })) {
      expect(await consumersOf(subject)).toHaveLength(1);
      end.abort();
    }
    for await (const _ of followSubject(bus, subject)) break;
    const early = new AbortController(); // aborted while the consumer is being made
    const following = followSubject(bus, subject, { signal: early.signal }).next();
    early.abort();
    expect((await following).done).toBe(true);
    await until(async () => (await consumersOf(subject)).length === 0, { what: "the consumers to be gone" });
  });

  test("follow-1 goes on with one consumer in place of one that was removed, or that left a message out", async () => {
    const subject = "toolbus.run.replaced";
    const { jetstream } = bus;
    const leavesOut: Bus["jetstream"]["consumers"]["getConsumerFromInfo"] = (info) => {
      const consumer = jetstream.consumers.getConsumerFromInfo(info);
      const original = consumer.consume.bind(consumer);
      const consume: typeof original = async (options) => {
        const messages = await original(options);
        const all = messages[Symbol.asyncIterator].bind(messages);
        const iterate = async function* () {
          for await (const message of { [Symbol.asyncIterator]: all })
            if (message.info.deliverySequence !== 3) yield message;
        };
        return Object.assign(messages, { [Symbol.asyncIterator]: iterate });
      };
      return Object.assign(consumer, { consume });
    };
    const consumers = Object.assign(Object.create(jetstream.consumers), { getConsumerFromInfo: leavesOut });
    const lossy: Bus = { ...bus, jetstream: Object.assign(Object.create(jetstream), { consumers }) };
    await appendMany(bus, subject, 10);
    const end = new AbortController();
    const seen: string[] = [];
    const following = (async () => {
      for await (const message of followSubject(lossy, subject, { signal: end.signal })) seen.push(text(message));
    })();
    await until(() => seen.length === 10, { what: "messages that were left out" });
    const [removed = ""] = await consumersOf(subject);
    await bus.manager.consumers.delete("TOOLBUS_RUNS", removed);
    await appendMany(bus, subject, 1, 10);
    await until(() => seen.length === 11, { timeoutMs: 2_000, what: "the message after the removal" });
    await until(async () => (await consumersOf(subject)).length === 1, { what: "the others to be gone" });
    end.abort();
    await following;
    expect(seen).toEqual(Array.from({ length: 11 }, (_, index) => `${index}`));
    await until(async () => (await consumersOf(subject)).length === 0, { what: "all to be gone" });
  });

  test("follow-3 removes nothing that was refused, as by a cluster without a leader, and counts no removal as waiting", async () => {
    const subject = "toolbus.run.leaderless";
    await appendMany(bus, subject, 1);
    let [refusals, removals] = [0, 0];
    const add: Bus["manager"]["consumers"]["add"] = async (...args) => {
      if (refusals++ < 5) throw new JetStreamApiError({ code: 503, err_code: 10_008, description: "no leader" });
      return bus.manager.consumers.add(...args);
    };
    const remove: Bus["manager"]["consumers"]["delete"] = async (...args) => {
      removals += 1;
      if (removals === 1) throw new JetStreamApiError({ code: 503, err_code: 10_008, description: "no leader" });
      return bus.manager.consumers.delete(...args);
    };
    const leaderless = busWhere({ add, delete: remove });
    await callPatience.run(async () => {
      for await (const _ of followSubject(leaderless, subject)) break;
      const leftMs = callPatience.leftMs;
      await until(async () => removals === 2 && (await consumersOf(subject)).length === 0, { timeoutMs: 4_000 });
      await delay(50);
      expect(callPatience.leftMs).toBe(leftMs);
    });
    expect(refusals).toBe(6);
  });

  test("follow-4 a refusal ends it, unless somebody is told of interruptions", { timeout: 15_000 }, async () => {
    const subject = "toolbus.run.refused";
    const refusal = { code: 400, err_code: 10_026, description: "maximum consumers limit reached" };
    let refusals = 0;
    const add: Bus["manager"]["consumers"]["add"] = async (...args) => {
      if (refusals++ < 2) throw new JetStreamApiError(refusal);
      return bus.manager.consumers.add(...args);
    };
    const full = busWhere({ add });
    await appendMany(bus, subject, 1);
    await expect(followSubject(full, subject).next()).rejects.toThrow(refusal.description);
    const causes: unknown[] = [];
    for await (const message of followSubject(full, subject, { onInterrupted: (cause) => causes.push(cause) })) {
      expect(text(message)).toBe("0");
      break;
    }
    expect(causes).toEqual([expect.objectContaining({ message: refusal.description })]);
  });

  test("follow-4 a view whose first consumer was refused is whole once it has another one", {
    timeout: 15_000,
  }, async () => {
    const faults: string[] = [];
    let refusals = 0;
    const add: Bus["manager"]["consumers"]["add"] = async (...args) => {
      if (refusals++ === 0) throw new JetStreamApiError({ code: 400, err_code: 10_026, description: "too many" });
      return bus.manager.consumers.add(...args);
    };
    const full = busWhere({ add });
    const place = { bucket: "toolbus_tools", prefix: "refused.", codec: jsonCodec((value) => value) } as const;
    await createBucket(bus, place).put("a", 1);
    await using followed = await openBucketView(createBucket(full, place), (fault) => void faults.push(fault));
    await followed.caughtUp();
    expect(followed.view.get("a")?.value).toBe(1);
    expect(faults).toEqual(["toolbus_tools refused. is not followed for now: too many"]);
  });

  test("follow-4 ends where the stream was made anew, at once too", async () => {
    await using local = await openTestBus();
    const subject = "toolbus.run.anew";
    await appendMany(local, subject, 5);
    const { config } = await local.manager.streams.info("TOOLBUS_RUNS");
    const messages = followSubject(local, subject, { onInterrupted: () => {} });
    for (let count = 0; count < 5; count += 1) await messages.next();
    const ended = expect(messages.next()).rejects.toThrow(/TOOLBUS_RUNS was removed and made anew/);
    await local.manager.streams.delete("TOOLBUS_RUNS");
    await local.manager.streams.add(config);
    await appendMany(local, subject, 9);
    await ended;
  });

  test("follow-4 ends with the connection", async () => {
    await using local = await openTestBus();
    const follower = await local.connect();
    const messages = followSubject(follower, "toolbus.run.closed", { onInterrupted: () => {} });
    const ended = messages.next();
    await follower.connection.close();
    await expect(ended).rejects.toThrow(/is closed/);
  });
});

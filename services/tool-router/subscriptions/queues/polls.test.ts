import type { JetStreamManager } from "@nats-io/jetstream";
import { expect, onTestFinished, test } from "vitest";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { openPull } from "./pulls.ts";

/** A bus whose consumers cannot be made for a while, as without a leader; counts the attempts that are under way. */
async function openLeaderless() {
  const bus = await openTestBus();
  const { consumers } = bus.manager;
  const state = { isLeaderless: false, attempts: 0, underWay: 0, most: 0 };
  const add: JetStreamManager["consumers"]["add"] = async (...given) => {
    if (!state.isLeaderless) return consumers.add(...given);
    state.attempts += 1;
    state.underWay += 1;
    state.most = Math.max(state.most, state.underWay);
    await delay(900);
    state.underWay -= 1;
    throw new DOMException("no answer", "TimeoutError");
  };
  const manager = { ...bus.manager, consumers: Object.assign(Object.create(consumers), { add }) };
  return {
    ...{ bus, state },
    leaderless: Object.assign(Object.create(bus), { manager }) as typeof bus,
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}

test("a consumer that is gone is made anew by one attempt after the other, however long nobody answers", async () => {
  await using suite = await openLeaderless();
  const { bus, leaderless, state } = suite;
  const fetched: string[] = [];
  const consumer = { stream: "TOOLBUS_OFFERS", name: "polled", filterSubject: "toolbus.offer.>" };
  const onMessage = ({ subject }: { subject: string }) => void fetched.push(subject);
  const pull = openPull(leaderless, consumer, { what: "polling", room: () => 8, onMessage, onFault: () => {} });
  await pull.prepare();
  const timer = setInterval(() => {
    pull.poll();
    pull.check();
  }, 100);
  onTestFinished(() => {
    clearInterval(timer);
    pull.close();
  });
  state.isLeaderless = true;
  await bus.manager.consumers.delete("TOOLBUS_OFFERS", "polled");
  await until(() => state.attempts >= 5, { timeoutMs: 20_000 });
  expect(state.most).toBe(1);
  state.isLeaderless = false;
  await bus.jetstream.publish("toolbus.offer.x.c1", "a call");
  await until(() => fetched.length > 0, { timeoutMs: 10_000 });
});

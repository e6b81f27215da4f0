import type { JetStreamManager } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { dueHeader, openDueWork } from "./due-work.ts";

test("a consumer that is gone is made anew by one attempt after the other, and then gives what is due", async () => {
  await using bus = await openTestBus();
  const { consumers } = bus.manager;
  const state = { isLeaderless: false, attempts: 0 };
  const add: JetStreamManager["consumers"]["add"] = async (...given) => {
    state.attempts += 1;
    if (state.isLeaderless) throw new Error("no leader");
    return consumers.add(...given);
  };
  const manager = { ...bus.manager, consumers: Object.assign(Object.create(consumers), { add }) };
  const [notified, faults] = [[] as string[], [] as string[]];
  await using due = openDueWork(Object.assign(Object.create(bus), { manager }), {
    notify: (callIds) => void notified.push(...callIds),
    check: async () => undefined,
    onFault: (fault) => void faults.push(fault),
  });
  const write = async (callId: string) => {
    const fields = headers();
    for (const [name, value] of Object.entries(dueHeader({ kind: "notify" }))) fields.set(name, value);
    await bus.jetstream.publish(`$KV.toolbus_calls.call.${callId}`, "", { headers: fields });
  };
  await write("c1");
  due.fetchNow();
  await until(() => notified.includes("c1"));
  state.isLeaderless = true;
  await consumers.delete("KV_toolbus_calls", "tool_router_due_work");
  await until(() => state.attempts >= 4);
  expect(faults).toEqual(["due work of calls waits: no leader"]);
  state.isLeaderless = false;
  await write("c2");
  await until(() => notified.includes("c2"));
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { openProxy, type ProxyOptions } from "../../../../test/harness/proxy/proxy.ts";
import { until } from "../../../time/until.ts";
import { type Bus, openBus } from "../../bus.ts";
import { lastSequenceOf } from "../read.ts";
import { appendFenced } from "./append.ts";

let bus: TestBus;
beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

const portOf = (url: string) => Number(new URL(url).port);

/** A bus whose connection passes through a proxy, both for one test. */
async function openThroughProxy(stack: AsyncDisposableStack, options: Omit<ProxyOptions, "port">) {
  const { url, login } = bus.server;
  const proxy = stack.use(await openProxy({ port: portOf(url), ...options }));
  const far = stack.use(await openBus({ url: `nats://127.0.0.1:${proxy.port}`, login, name: "far" }));
  return { proxy, far };
}

const append = (on: Bus, subject: string, payload: string, expectedLastSequence = 0) =>
  appendFenced(on, { subject, expectedLastSequence, payload });

test("an append whose acknowledgement was lost is found to be stored, though another stands after it", async () => {
  await using stack = new AsyncDisposableStack();
  const subject = "toolbus.run.lost-acknowledgement";
  let isDeaf = false;
  const { proxy, far } = await openThroughProxy(stack, {
    onServerData: (_data, connection) => !(isDeaf && connection === 0),
  });
  isDeaf = true;
  const appending = append(far, subject, "mine");
  const stored = await until(() => lastSequenceOf(bus, subject));
  expect((await append(bus, subject, "another's", stored)).kind).toBe("appended");
  proxy.cut(0);
  expect(await appending).toEqual({ kind: "appended", sequence: stored });
});

test("an append that never arrived is a conflict when another stands in its place", async () => {
  await using stack = new AsyncDisposableStack();
  const subject = "toolbus.run.never-arrived";
  let hasSent = false;
  const { proxy, far } = await openThroughProxy(stack, {
    onClientData: (data, connection) => {
      const isAppend = connection === 0 && data.includes(subject);
      hasSent ||= isAppend;
      return !isAppend;
    },
  });
  const appending = append(far, subject, "mine");
  await until(() => hasSent);
  expect((await append(bus, subject, "another's")).kind).toBe("appended");
  proxy.cut(0);
  expect(await appending).toEqual({ kind: "conflict" });
});

test("an append that arrives late, between the reading and the second attempt, is still known for one's own", async () => {
  await using stack = new AsyncDisposableStack();
  const subject = "toolbus.run.late";
  let hasSent = false;
  const { proxy, far } = await openThroughProxy(stack, {
    onClientData: async (data, connection) => {
      const isAppend = data.includes(`HPUB ${subject}`);
      if (!isAppend) return true;
      if (connection === 0) {
        hasSent = true;
        return false;
      }
      proxy.release(0);
      await until(() => lastSequenceOf(bus, subject));
      return true;
    },
  });
  const appending = append(far, subject, "mine");
  await until(() => hasSent);
  proxy.cut(0);
  expect((await appending).kind).toBe("appended");
  const { state } = await bus.manager.streams.info("TOOLBUS_RUNS", { subjects_filter: subject });
  expect(state.subjects?.[subject]).toBe(1);
});

test("an append that no server answers in time is given up, and its failure says that the outcome is unknown", async () => {
  await using stack = new AsyncDisposableStack();
  let isDeaf = false;
  const { far } = await openThroughProxy(stack, { onServerData: () => !isDeaf });
  isDeaf = true;
  const subject = "toolbus.run.unanswered";
  const appending = appendFenced(far, { subject, expectedLastSequence: 0, payload: "mine", timeoutMs: 300 });
  await expect(appending).rejects.toMatchObject({ code: "unavailable", reason: "OUTCOME_UNKNOWN" });
  isDeaf = false;
});

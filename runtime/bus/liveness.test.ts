import type { Msg } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { openTestBus } from "../../test/harness/bus.ts";
import { freezeProcess, signalProcess } from "../../test/harness/processes.ts";
import { until } from "../time/until.ts";
import { askOnceWhetherAlive, askWhetherAlive } from "./liveness.ts";

const echo = {
  callback: (_error: unknown, message: { respond(data: Uint8Array): void; data: Uint8Array }) =>
    void message.respond(message.data),
};

test("BUS-4 liveness-1 liveness-2 who answers is alive; who listens and is silent for the time, and who does not listen, is not", async () => {
  await using bus = await openTestBus();
  const heard: unknown[] = [];
  bus.connection.subscribe("asked.echo", echo);
  bus.connection.subscribe("asked.deaf", { callback: (_error, message) => void heard.push(message) });
  const ask = (name: string) => askWhetherAlive(bus, { subject: `asked.${name}`, text: "who is it?", silenceMs: 400 });
  const answered = await ask("echo");
  expect(answered.kind === "alive" && answered.message.string()).toBe("who is it?");
  expect(await ask("none")).toEqual({ kind: "nobody" });
  expect(await ask("deaf")).toEqual({ kind: "silent" });
  expect(heard).toHaveLength(4);
});

test("BUS-4 liveness-4 it is unsure while the server is away and just after, and who asks until it is sure hears who came back later", async () => {
  await using bus = await openTestBus();
  const other = await bus.connect();
  bus.connection.subscribe("asked.deaf", { callback: () => {} });
  await bus.connection.flush();
  const lost = askOnceWhetherAlive(bus, { subject: "asked.deaf", silenceMs: 60_000 });
  await bus.server.kill();
  expect(await lost).toEqual({ kind: "unsure" });
  const asked = askWhetherAlive(bus, { subject: "asked.late" });
  await bus.server.restart();
  await until(() => bus.link.isUp && other.link.isUp);
  expect(await askOnceWhetherAlive(bus, { subject: "asked.late" })).toEqual({ kind: "unsure" });
  other.connection.subscribe("asked.late", echo);
  expect((await asked).kind).toBe("alive");
});

test("liveness-3 a server that does not answer either proves nothing", async () => {
  await using bus = await openTestBus();
  await freezeProcess(bus.server);
  const asked = askOnceWhetherAlive(bus, { subject: "asked.echo", silenceMs: 200 });
  const thaw = setTimeout(() => signalProcess(bus.server, "SIGCONT"), 10_000);
  expect(await asked).toEqual({ kind: "unsure" });
  clearTimeout(thaw);
  signalProcess(bus.server, "SIGCONT");
});

test("liveness-2 an answer counts that takes longer than the time between two questions", async () => {
  await using bus = await openTestBus();
  const callback = (_error: unknown, message: Msg) => void setTimeout(() => message.respond("late"), 500);
  bus.connection.subscribe("asked.slow", { callback });
  expect((await askWhetherAlive(bus, { subject: "asked.slow" })).kind).toBe("alive");
});

test("who asks no longer is told so with the reason", async () => {
  await using bus = await openTestBus();
  bus.connection.subscribe("asked.deaf", { callback: () => {} });
  const leaving = new AbortController();
  const asked = askWhetherAlive(bus, { subject: "asked.deaf", silenceMs: 60_000, signal: leaving.signal });
  leaving.abort(new Error("gone"));
  await expect(asked).rejects.toThrow("gone");
});

import { expect, test } from "vitest";
import { openTestBus } from "../../test/harness/bus.ts";
import { answersPromptly, askOnce } from "./ask.ts";

test("BUS-4 a question is answered, or it is told whether nobody listens, nobody answers, or the bus was lost", async () => {
  await using bus = await openTestBus();
  const { connection } = bus;
  connection.subscribe("asked.echo", { callback: (_error, message) => void message.respond(message.data) });
  connection.subscribe("asked.deaf", { callback: () => {} });
  const ask = (name: string, timeoutMs: number) =>
    askOnce(bus, { subject: `asked.${name}`, text: "who is it?", timeoutMs });
  const answered = await ask("echo", 5_000);
  expect(answered.kind === "answered" && answered.message.string()).toBe("who is it?");
  expect(await ask("none", 5_000)).toEqual({ kind: "nobody" });
  expect(await ask("deaf", 50)).toEqual({ kind: "silent" });
  expect(await answersPromptly(bus, 5_000)).toBe(true);
  const lost = ask("deaf", 60_000);
  await bus.server.kill();
  expect(await lost).toEqual({ kind: "lost" });
});

test("who asks no longer is told so with the reason", async () => {
  await using bus = await openTestBus();
  bus.connection.subscribe("asked.deaf", { callback: () => {} });
  const leaving = new AbortController();
  const asked = askOnce(bus, { subject: "asked.deaf", timeoutMs: 60_000, signal: leaving.signal });
  leaving.abort(new Error("gone"));
  await expect(asked).rejects.toThrow("gone");
});

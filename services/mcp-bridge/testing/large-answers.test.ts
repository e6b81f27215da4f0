import { describe, expect, test } from "vitest";
import { maxToolValues, tooMany } from "#runtime/schema/json/json-size.ts";
import { callThrough, openConnection } from "./connection.ts";
import { openLargeServer } from "./servers/large-server.ts";

const MAX_MESSAGE_BYTES = 4 * 2 ** 20;

describe("an answer over HTTP that is larger than a message may be", () => {
  test.each(["json", "gzip", "events", "line"])(
    "SEC-5 ends the call with the limit, and the rest of it is not read: %s",
    async (form) => {
      await using server = await openLargeServer(400);
      await using connection = openConnection(
        { name: "large", url: server.url },
        { maxMessageBytes: MAX_MESSAGE_BYTES },
      );
      await connection.settled(new AbortController().signal);
      const { arrayBuffers: before } = process.memoryUsage();
      await expect(callThrough(connection, form)).rejects.toMatchObject({
        reason: "OUTCOME_UNKNOWN",
        message: expect.stringContaining(`larger than ${MAX_MESSAGE_BYTES} bytes`),
      });
      expect(server.writtenMegabytes).toBeLessThan(400);
      expect((process.memoryUsage().arrayBuffers - before) / 2 ** 20).toBeLessThan(100);
    },
    30_000,
  );

  test.each(["values", "value-events", "hidden-events"])(
    "SEC-5 one of more small values than are read is not read: %s",
    async (form) => {
      await using server = await openLargeServer(30);
      await using connection = openConnection({ name: "large", url: server.url });
      await expect(callThrough(connection, form)).rejects.toMatchObject({
        reason: "OUTCOME_UNKNOWN",
        message: expect.stringContaining(tooMany(maxToolValues)),
      });
    },
    30_000,
  );

  test("SEC-5 many events of few values each come through", async () => {
    await using server = await openLargeServer(30);
    await using connection = openConnection({ name: "large", url: server.url });
    expect((await callThrough(connection, "many-events")).output).toBe("all");
  }, 30_000);

  test("SEC-5 a long line of an event stream that is within the limit is read in no time", async () => {
    await using server = await openLargeServer(40);
    await using connection = openConnection({ name: "large", url: server.url });
    const before = process.cpuUsage();
    const { output } = await callThrough(connection, "line");
    expect(String(output).length).toBe(40 * 2 ** 20);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(10_000);
  }, 30_000);
});

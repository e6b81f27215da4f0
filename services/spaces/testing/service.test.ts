import { describe, expect, test } from "vitest";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { clientsOn, openInstance } from "./test-spaces.ts";

describe("the service spaces", () => {
  test("BUS-4 an instance that stops ends its watches at once, and says so", async () => {
    await using own = await openTestBus();
    const instance = await openInstance(own, "c");
    const { spaces } = clientsOn(own);
    const spaceId = "stopped";
    await spaces.createSpace({ spaceId });
    const iterator = spaces.watchSpace({ spaceId, fromSequence: 1n })[Symbol.asyncIterator]();
    await spaces.sendMessage({ spaceId, content: textContent("x") });
    await iterator.next(); // where it begins
    await iterator.next();
    const next = expect(iterator.next().then(() => iterator.next())).rejects.toThrow(/unavailable/);
    await instance[Symbol.asyncDispose]();
    await next;
  });

  test("BUS-4 what was said outlives the server, and what is said afterwards still reaches inboxes", async () => {
    await using own = await openTestBus();
    await using _ = await openInstance(own, "d");
    const { spaces, inbox } = clientsOn(own);
    await spaces.createSpace({ spaceId: "durable" });
    await spaces.enterSpace({
      spaceId: "durable",
      member: { case: "agent", value: { sessionId: "d1", agent: "bot" } },
    });
    await spaces.sendMessage({ spaceId: "durable", content: textContent("before") });
    await own.server.kill();
    await own.server.restart();
    await until(
      () =>
        spaces.sendMessage({ spaceId: "durable", content: textContent("after"), messageId: "m" }).catch(() => false),
      {
        what: "the service to be back",
      },
    );
    const { messages } = await spaces.listMessages({ spaceId: "durable" });
    expect(messages.map(({ content }) => content.value)).toMatchObject([
      { content: textContent("after") },
      { content: textContent("before") },
    ]);
    expect((await spaces.getActiveSpace({ sessionId: "d1", agent: "bot" })).spaceId).toBe("durable");
    const waiting = async () =>
      (await inbox.listInboxEvents({ sessionId: "d1", agent: "bot" })).events.map(({ eventId }) => eventId);
    await until(async () => (await waiting()).length === 2, { timeoutMs: 15_000 });
    expect(await waiting()).toContain("msg:durable:m");
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectOnce } from "#runtime/bus/credentials/connect.ts";
import { openTestServer, type TestServer } from "../bus.ts";
import { createFrameSplitter } from "./nats-frames.ts";
import { openNatsProxy, type Verdict } from "./nats-proxy.ts";

describe("frames of NATS", () => {
  const text =
    'INFO {"a":1}\r\nHMSG one.two 7 _INBOX.x 12 17\r\nNATS/1.0\r\n\r\nhello\r\nPING\r\nPUB some.where 3\r\na\r\n\r\n' +
    "PUB some.where back 0\r\n\r\n";
  const expected = [
    ["INFO", "", "", ""],
    ["HMSG", "one.two", "_INBOX.x", "hello"],
    ["PING", "", "", ""],
    ["PUB", "some.where", "", "a\r\n"],
    ["PUB", "some.where", "back", ""],
  ];

  it.each([1, 2, 5, 1_000])("are found in chunks of %i bytes, and lose none", (size) => {
    const split = createFrameSplitter();
    const bytes = Buffer.from(text);
    const frames = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      split(bytes.subarray(index * size, (index + 1) * size)),
    ).flat();
    const seen = frames.map(({ verb, subject, reply, payload }) => [verb, subject, reply, payload.toString()]);
    expect(seen).toEqual(expected);
    expect(Buffer.concat(frames.map(({ bytes: whole }) => whole)).toString()).toBe(text);
  });
});

describe("a proxy before NATS", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await openTestServer();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it("passes, doubles, drops and holds single messages, in order", async () => {
    const verdicts: Record<string, Verdict | Promise<Verdict>> = { twice: "twice", drop: "drop" };
    const held = Promise.withResolvers<Verdict>();
    verdicts.hold = held.promise;
    await using proxy = await openNatsProxy({
      port: Number(new URL(server.url).port),
      onFrame: (frame, direction) => (direction === "up" && verdicts[frame.payload.toString()]) || "pass",
    });
    const { login } = server;
    const client = await connectOnce({ url: `127.0.0.1:${proxy.port}`, login, name: "test" });
    const listener = await connectOnce({ url: server.url, login, name: "test" });
    const seen: string[] = [];
    const last = Promise.withResolvers<void>();
    listener.subscribe("words", {
      callback: (_, message) => {
        seen.push(message.string());
        if (message.string() === "drop") last.reject(new Error("what is dropped arrived"));
        if (message.string() === "last") last.resolve();
      },
    });
    await listener.flush();
    for (const word of ["first", "twice", "drop"]) client.publish("words", word);
    await client.flush();
    for (const word of ["hold", "last"]) client.publish("words", word);
    const probe = client.flush();
    await listener.flush();
    expect(seen).toEqual(["first", "twice", "twice"]);
    held.resolve("pass");
    await Promise.all([probe, last.promise]);
    expect(seen).toEqual(["first", "twice", "twice", "hold", "last"]);
    await Promise.all([client.close(), listener.close()]);
  });
});

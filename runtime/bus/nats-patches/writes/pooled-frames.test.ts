import { expect, test } from "vitest";
import { openTestBus } from "../../../../test/harness/bus.ts";

/** The transport below the client's protocol, which writes to the socket. */
interface Inside {
  protocol: { transport: { send: (frame: Uint8Array) => void } };
}

test("small messages are written from the memory of Node's pool, byte for byte", async () => {
  await using bus = await openTestBus();
  const { transport } = (bus.connection as unknown as Inside).protocol;
  const frames: Uint8Array[] = [];
  const send = transport.send.bind(transport);
  transport.send = (frame) => {
    frames.push(frame);
    send(frame);
  };
  const heard: string[] = [];
  bus.connection.subscribe("told", { callback: (_error, message) => void heard.push(message.string()) });
  const texts = ["", "ünïque", "x".repeat(100_000), "last"];
  for (const text of texts) bus.connection.publish("told", text);
  await bus.connection.flush();
  expect(heard).toEqual(texts);
  frames.length = 0;
  bus.connection.publish("told", "ünïque", { reply: "nöbody" });
  await bus.connection.flush();
  const [frame] = frames;
  expect(Buffer.from(frame ?? []).toString()).toContain("PUB told nöbody 8\r\nünïque\r\n");
  expect(frame?.buffer.byteLength).toBe(Buffer.poolSize);
});

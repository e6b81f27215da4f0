import { expect, test } from "vitest";
import { openTestBus } from "../../../../test/harness/bus.ts";

/** The transport below the client's protocol, which writes to the socket. */
interface Inside {
  protocol: { transport: { send: (frame: Uint8Array) => void } };
}

test("what is sent in one turn of the event loop leaves in one write, in order", async () => {
  await using bus = await openTestBus();
  const { transport } = (bus.connection as unknown as Inside).protocol;
  const frames: string[] = [];
  const send = transport.send.bind(transport);
  transport.send = (frame) => {
    frames.push(Buffer.from(frame).toString());
    send(frame);
  };
  const heard: string[] = [];
  bus.connection.subscribe("told", { callback: (_error, message) => void heard.push(message.string()) });
  await bus.connection.flush();
  frames.length = 0;
  for (const word of ["one", "two", "three"]) {
    bus.connection.publish("told", word);
    await null; // the client by itself would write here
  }
  await bus.connection.flush();
  expect(frames.filter((frame) => frame.includes("PUB told"))).toHaveLength(1);
  expect(heard).toEqual(["one", "two", "three"]);
});

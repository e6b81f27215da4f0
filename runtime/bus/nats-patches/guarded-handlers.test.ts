import type { MsgHdrs, NatsConnection } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { openTestBus } from "../../../test/harness/bus.ts";
import { until } from "../../time/until.ts";
import type { BusStatus } from "../bus.ts";
import { listen } from "../link/listen.ts";

/** As no client writes them: a value ends at a line's end of two characters, and this one holds another. */
const malformed = { encode: () => Buffer.from("NATS/1.0\r\nA: b\nc\r\n\r\n") } as unknown as MsgHdrs;

test.each([
  [
    "that its handler cannot read",
    ({ connection }: { connection: NatsConnection }) => connection.publish("strange", "no JSON"),
    "JSON",
  ],
  [
    "that answers a request, and whose headers are none",
    ({ connection }: { connection: NatsConnection }) => {
      connection.subscribe("asked", {
        callback: (_, { reply = "" }) => connection.publish(reply, "", { headers: malformed }),
      });
      connection.request("asked", "", { timeout: 100 }).catch(() => {}); // nobody has answered
    },
    "header",
  ],
])("BUS-4 a message %s is told, and the connection reads on", async (_, send, reason) => {
  const told: BusStatus[] = [];
  await using bus = await openTestBus({ onStatus: (status) => void told.push(status) });
  const read: unknown[] = [];
  listen(bus, "strange", (message) => void read.push(message.json()));
  send(bus);
  const unreadable = await until(() => told.find(({ kind }) => kind === "unreadable"));
  expect(unreadable).toMatchObject({ sequence: 0, reason: expect.stringContaining(reason) });
  bus.connection.publish("strange", '"well"');
  await until(() => read.length > 0);
  expect(read).toEqual(["well"]);
});

import { expect, test } from "vitest";
import { openTestBus } from "../../../test/harness/bus.ts";
import { until } from "../../time/until.ts";
import type { BusStatus } from "../bus.ts";
import { listen } from "./listen.ts";

test("BUS-4 a message that its handler cannot read is told, and the connection reads on", async () => {
  const told: BusStatus[] = [];
  await using bus = await openTestBus({ onStatus: (status) => void told.push(status) });
  const read: unknown[] = [];
  listen(bus, "strange", (message) => void read.push(message.json()));
  bus.connection.publish("strange", "no JSON");
  bus.connection.publish("strange", '"well"');
  await until(() => read.length > 0);
  expect(read).toEqual(["well"]);
  const reason = expect.stringContaining("JSON");
  expect(told).toContainEqual({ kind: "unreadable", subject: "strange", sequence: 0, reason });
});

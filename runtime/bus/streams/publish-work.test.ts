import { expect, test } from "vitest";
import { openTestBus } from "../../../test/harness/bus.ts";
import { publishWork } from "./publish-work.ts";

test("LOOP-13 a wake-up that a full store refuses is told as such, with the name of the store", async () => {
  await using bus = await openTestBus();
  const { config } = await bus.manager.streams.info("TOOLBUS_WAKES");
  await bus.manager.streams.update("TOOLBUS_WAKES", { ...config, max_bytes: 4_096 });
  const work = { subject: "toolbus.wake.s", payload: new Uint8Array(512), what: "waking session s" };
  const fill = async () => {
    for (;;) await publishWork(bus, { stream: "TOOLBUS_WAKES", ...work });
  };
  await expect(fill()).rejects.toMatchObject({
    code: "resource_exhausted",
    reason: "STORE_FULL",
    metadata: { store: "TOOLBUS_WAKES" },
  });
});

import { expect, test } from "vitest";
import { readConfig } from "./config.ts";

test("WORK-3 a worker is ended after ten idle minutes, unless the environment says otherwise", () => {
  expect(readConfig({}).times.idleMs).toBe(600_000);
  expect(readConfig({ TOOLBUS_WORKER_IDLE: "20s" }).times.idleMs).toBe(20_000);
});

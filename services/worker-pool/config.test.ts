import { expect, test } from "vitest";
import { readConfig } from "./config.ts";

test("WORK-3 a worker is ended after ten idle minutes, unless the environment says otherwise", () => {
  expect(readConfig({}).times.idleMs).toBe(600_000);
  expect(readConfig({ TOOLBUS_WORKER_IDLE: "20s" }).times.idleMs).toBe(20_000);
});

test("SEC-3 confined tools see neither the keys of the bus nor the secrets of this service, also under `toolbus serve`", () => {
  const { confinement } = readConfig({
    TOOLBUS_BUS_CREDENTIALS: "/run/bus",
    TOOLBUS_SECRETS_DIRECTORY: "/run/secrets",
  });
  expect(confinement.privatePaths).toEqual(expect.arrayContaining(["/run/bus", "/run/secrets"]));
});

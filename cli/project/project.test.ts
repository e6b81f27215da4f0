import { expect, onTestFinished, test, vi } from "vitest";
import { dropEmptyOptions } from "./project.ts";

test("PROD-1 an empty variable of an option is none, and one that has a value stays", () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv("TOOLBUS_HTTP_PORT", "");
  vi.stubEnv("TOOLBUS_DIRECTORY", " ");
  vi.stubEnv("NATS_URL", "nats://127.0.0.1:4222");
  dropEmptyOptions();
  const { TOOLBUS_HTTP_PORT, TOOLBUS_DIRECTORY, NATS_URL } = process.env;
  expect({ TOOLBUS_HTTP_PORT, TOOLBUS_DIRECTORY, NATS_URL }).toEqual({ NATS_URL: "nats://127.0.0.1:4222" });
});

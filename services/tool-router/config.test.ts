import { expect, test } from "vitest";
import { readConfig } from "./config.ts";

test("the environment is read whole: providers, allowed addresses, secrets", () => {
  const config = readConfig({
    TOOLBUS_PROVIDERS: "acme=acme-service, far=https://tools.example.org, fast=grpc://127.0.0.1:9000",
    TOOLBUS_GATEWAY_ALLOW: "127.0.0.1:8080,10.0.0.0/8",
    TOOLBUS_SECRET_KEY: "s3cret",
  });
  expect(config.providers).toEqual([
    { name: "acme", address: { case: "service", value: "acme-service" } },
    { name: "far", address: { case: "url", value: "https://tools.example.org" } },
    { name: "fast", address: { case: "url", value: "grpc://127.0.0.1:9000" } },
  ]);
  expect(config.contextIdleMs).toBe(60_000);
  expect(config.gatewayAllow).toEqual(["127.0.0.1:8080", "10.0.0.0/8"]);
  expect(config.secrets.get("KEY")).toBe("s3cret");
});

test("ORCH-1 calls in flight get 5 s at a switch, unless the environment says otherwise", () => {
  expect(readConfig({}).switchDrainMs).toBe(5_000);
  expect(readConfig({ TOOLBUS_SWITCH_DRAIN: "8s" }).switchDrainMs).toBe(8_000);
});

test("what cannot be understood is refused by the name of its variable, all at once", () => {
  const env = { TOOLBUS_PROVIDERS: "acme", TOOLBUS_GATEWAY_ALLOW: "inside", TOOLBUS_PROVIDER_STARTUP: "soon" };
  for (const name of Object.keys(env)) expect(() => readConfig(env)).toThrow(name);
});

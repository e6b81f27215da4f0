import { expect, test } from "vitest";
import { createAddressGuard } from "./address-guard.ts";

const guard = createAddressGuard(["10.1.0.0/16", "inside.example:8080"], {
  setting: "THE_SETTING",
  resolveWith: async () => [{ address: "192.168.0.7", family: 4 }],
});

test("TOOL-3 what the configuration allows is allowed: a range on every port, a host on its own", async () => {
  expect(await guard.resolve("inside.example", 8080)).toHaveLength(1);
  expect(await guard.resolve("INSIDE.example", 8080)).toHaveLength(1);
  await expect(guard.resolve("inside.example", 80)).rejects.toThrow(/192\.168\.0\.7/);
  await expect(guard.resolve("inside.example.", 8080)).rejects.toThrow(/192\.168\.0\.7/);
  expect(guard.refusalOf("10.1.2.3", "10.1.2.3", 80)).toBeUndefined();
  expect(guard.refusalOf("::ffff:10.1.2.3", "any.example", 80)).toBeUndefined();
  expect(guard.refusalOf("10.2.0.1", "any.example", 80)).toBe(
    "the address 10.2.0.1 of any.example is not a public one, and THE_SETTING does not allow it",
  );
});

test.each([
  "93.184.216.34",
  "8.8.8.8",
  "100.128.0.1",
  "172.32.0.1",
  "192.167.255.255",
  "2606:4700::1111",
  "::ffff:8.8.8.8",
])("TOOL-3 %s is a public address", (address) => {
  expect(guard.refusalOf(address, "any.example", 443)).toBeUndefined();
});

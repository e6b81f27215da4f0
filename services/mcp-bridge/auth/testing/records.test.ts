import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { openBucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { LoginRecords } from "../records.ts";
import { createSealing } from "../sealing.ts";

const origin = { authorizationServer: "https://login.example", resource: "https://notes.example/mcp" };
const granted = (count: number) => ({ server: {}, grant: { origin, accessToken: `access ${count}` } });
const beginning = { origin, principal: "ada", stateHash: "", codeVerifier: "", expiresAtMs: Date.now() + 60_000 };

test("SEC-6 of a principal's records, those that hold no login leave for others, the oldest first; logins stay", async () => {
  const bucket = createMemoryBucket<Uint8Array>();
  await using followed = await openBucketView(bucket, () => {});
  const { view } = followed;
  const records = new LoginRecords({ bucket, view, sealing: createSealing([randomBytes(32)]) });
  await records.update("ada.begun", () => ({ server: {}, pending: beginning }));
  await records.update("eve.wanted", () => ({ server: {}, wanted: { atMs: 1 } }));
  for (let count = 0; count < 97; count++) await records.update(`ada.${count}`, () => granted(count));
  for (const name of ["old", "new"]) await records.update(`ada.${name}`, () => ({ server: {}, wanted: { atMs: 1 } }));
  await records.update("ada.97", () => granted(97));
  expect(["old", "new", "begun", "97"].map((name) => records.find(`ada.${name}`) !== undefined)).toEqual([
    false,
    true,
    true,
    true,
  ]);
  await records.update("ada.98", () => granted(98));
  await expect(records.update("ada.99", () => granted(99))).rejects.toThrow("log out of some");
  await records.update("ada.0", (record) => record && { ...record, grant: undefined });
  await records.update("ada.99", () => granted(99));
  expect(records.find("ada.99")).toEqual(granted(99));
  expect(records.find("eve.wanted")).toBeDefined();
});

test("SEC-6 room is made of nothing that another key has sealed, that is being renewed, or for what is not written", async () => {
  const bucket = createMemoryBucket<Uint8Array>();
  await using followed = await openBucketView(bucket, () => {});
  const { view } = followed;
  const [older, newer] = [randomBytes(32), randomBytes(32)];
  const ahead = new LoginRecords({ bucket, view, sealing: createSealing([newer, older]) });
  const behind = new LoginRecords({ bucket, view, sealing: createSealing([older]) });
  await ahead.update("ada.sealed", () => granted(0));
  await behind.update("ada.renewed", () => ({ server: {}, renewing: "another bridge" }));
  for (let count = 0; count < 97; count++) await behind.update(`ada.${count}`, () => granted(count));
  await behind.update("ada.wanted", () => ({ server: {}, wanted: { atMs: 1 } }));
  expect((await behind.update("ada.none", () => undefined)).hasChanged).toBe(false);
  expect(behind.find("ada.wanted"), "nothing was written").toBeDefined();
  await behind.update("ada.97", () => granted(97));
  await expect(behind.update("ada.98", () => granted(98))).rejects.toThrow("log out of some");
  expect([ahead.find("ada.sealed"), behind.find("ada.renewed")]).toEqual([granted(0), expect.anything()]);
});

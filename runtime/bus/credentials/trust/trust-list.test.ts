import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { writeCredentials } from "../directory.ts";
import { followTrustList, pathOfTrustList } from "./trust-list.ts";

let directory = "";
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-trust-"));
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(directory, { recursive: true });
});

const namesIn = (list: ReadonlyMap<string, { name: string; speaksFor: string }>) =>
  [...list.values()].map(({ name, speaksFor }) => `${name} ${speaksFor}`);

test("SEC-1 the list has those who may speak for somebody, and no third party", async () => {
  await writeCredentials(directory, () => [
    { name: "gateway", speaksFor: "callers" },
    { name: "spaces", speaksFor: "itself" },
    { name: "provider.dice" },
  ]);
  const trust = await (await followTrustList(directory))();
  expect(namesIn(trust)).toEqual(["admin everybody", "gateway callers", "spaces itself"]);
});

test("SEC-1 a service without the list, or with one that cannot be read, is told how to get it", async () => {
  const fault = /trust\.json, cannot be read: `toolbus up` and `toolbus bus credentials --out DIR` write it/;
  await expect(followTrustList(directory)).rejects.toThrow(fault);
  await writeFile(pathOfTrustList(directory), "{");
  await expect(followTrustList(directory)).rejects.toThrow(fault);
});

test("SEC-1 the list is read again after a while, and holds while the file is away", async () => {
  await writeCredentials(directory, () => [{ name: "spaces", speaksFor: "itself" }]);
  vi.useFakeTimers({ toFake: ["Date"] });
  const trust = await followTrustList(directory);
  await writeCredentials(directory, () => []);
  expect(namesIn(await trust())).toContain("spaces itself");
  vi.advanceTimersByTime(11_000);
  expect(namesIn(await trust())).toEqual(["admin everybody"]);
  await rm(pathOfTrustList(directory));
  vi.advanceTimersByTime(11_000);
  expect(namesIn(await trust())).toEqual(["admin everybody"]);
});

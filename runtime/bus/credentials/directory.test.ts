import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { pathOfSeed, readLogin, writeCredentials } from "./directory.ts";

let directory = "";
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-credentials-"));
});
afterEach(() => rm(directory, { recursive: true }));

const write = () => writeCredentials(directory, () => [{ name: "spaces", speaksFor: "itself" }]);

test("a key whose file the machine lost the text of is made again, and one that stands is kept", async () => {
  await write();
  const admin = await readLogin(directory, "admin");
  await writeFile(pathOfSeed(directory, "spaces"), "");
  await expect(readLogin(directory, "spaces")).rejects.toThrow(/there is no key of spaces/);
  await write();
  const made = await readLogin(directory, "spaces");
  expect(made.seed).toMatch(/^SU/);
  await write();
  expect(await readLogin(directory, "spaces")).toEqual(made);
  expect(await readLogin(directory, "admin")).toEqual(admin);
});

import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { VERSION } from "#runtime/config/version.ts";
import { projectRoot, runCommand } from "../../gen/command.ts";
import { strayVersions, versionPlaces } from "../one-version.ts";
import { buildRelease } from "./release.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-release-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

test("PROD-1 a release holds every package, built twice alike and proven, with its digest", {
  timeout: 300_000,
}, async () => {
  const told: string[] = [];
  const artifacts = await buildRelease(directory, { onProgress: (message) => told.push(message) });
  expect(told).toHaveLength(4);
  expect((await readdir(directory)).sort()).toEqual(["SHA256SUMS", ...artifacts.map(({ name }) => name)].sort());
  expect(artifacts.map(({ name }) => name).sort()).toEqual(
    [
      `toolbus-${VERSION}.tgz`,
      `toolbus-${VERSION}-py3-none-any.whl`,
      `toolbus_sdk-${VERSION}-py3-none-any.whl`,
      `toolbus_contract-${VERSION}-py3-none-any.whl`,
      `toolbus-contract-${VERSION}.binpb`,
      `toolbus-${VERSION}.cdx.json`,
    ].sort(),
  );
  await runCommand("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: directory });
  const bill = JSON.parse(await readFile(join(directory, `toolbus-${VERSION}.cdx.json`), "utf8"));
  expect(bill.metadata.component).toMatchObject({ name: "toolbus", version: VERSION });
});

test("PROD-1 a version that differs is found wherever one is written", async () => {
  const root = join(directory, "tree");
  for (const path of versionPlaces) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await cp(join(projectRoot, path), join(root, path));
  }
  expect(await strayVersions(root)).toEqual([]);
  for (const path of versionPlaces) {
    const text = await readFile(join(root, path), "utf8");
    await writeFile(join(root, path), text.replaceAll(VERSION, "9.9.9"));
    expect(await strayVersions(root)).toEqual([`${path} says 9.9.9, runtime/config/version.ts says ${VERSION}`]);
    await writeFile(join(root, path), text);
  }
});

import { expect, test } from "vitest";
import { faultsInLockFile } from "./lock-file.ts";

const lockOf = (packages: Record<string, object>) => JSON.stringify({ packages });
const asker = { version: "1.0.0", optionalDependencies: { "@tool/cli-darwin": "1.0.0" } };

test("a lock file that lacks an optional package of another platform is found", () => {
  expect(faultsInLockFile(lockOf({ "": {}, "node_modules/@tool/cli": asker }))).toEqual([
    "package-lock.json lacks @tool/cli-darwin, an optional package of node_modules/@tool/cli",
  ]);
});

test.each([
  "node_modules/@tool/cli-darwin",
  "node_modules/a/node_modules/@tool/cli-darwin",
  "node_modules/a/node_modules/b/node_modules/@tool/cli-darwin",
])("an optional package that stands in %s is seen from below", (path) => {
  const packages = { "": {}, "node_modules/a/node_modules/b": asker, [path]: {} };
  expect(faultsInLockFile(lockOf(packages))).toEqual([]);
});

test("an optional package that stands beside its asker's folder, out of sight, is found lacking", () => {
  const packages = { "node_modules/a": asker, "node_modules/c/node_modules/@tool/cli-darwin": {} };
  expect(faultsInLockFile(lockOf(packages))).toHaveLength(1);
});

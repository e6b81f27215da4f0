import { expect, test } from "vitest";
import { faultsInPackages } from "./locked-packages.ts";

const faultsOf = (entry: object) =>
  faultsInPackages(JSON.stringify({ packages: { "": {}, "node_modules/a": entry } })).faults;
const sound = { version: "1.0.0", integrity: "sha512-x", license: "MIT" };

test.each([
  ["a package of the suite without a hash", { ...sound, integrity: undefined }, "node_modules/a has no integrity"],
  ["a tool without a hash", { ...sound, integrity: undefined, dev: true }, "node_modules/a has no integrity"],
  ["one of another platform", { ...sound, integrity: undefined, optional: true }, "node_modules/a has no integrity"],
  ["a licence that nobody has read", { ...sound, license: "AGPL-3.0" }, "node_modules/a has the licence AGPL-3.0"],
  ["no licence", { ...sound, license: undefined }, "node_modules/a has the licence none"],
  ["what only developers may run", { ...sound, license: "MPL-2.0" }, "node_modules/a has the licence MPL-2.0"],
])("SEC-8 %s is found in the lock file", (_, entry, fault) => {
  expect(faultsOf(entry)).toEqual([expect.stringContaining(fault)]);
});

test.each([
  ["a package with its hash and a known licence", sound],
  ["a tool under the MPL", { ...sound, license: "MPL-2.0", dev: true }],
])("SEC-8 %s passes", (_, entry) => {
  expect(faultsOf(entry)).toEqual([]);
});

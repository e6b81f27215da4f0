import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const here = new URL("./", import.meta.url);
const patches = readdirSync(here, { recursive: true, encoding: "utf8" }).filter(
  (name) => name.endsWith(".ts") && !name.endsWith(".test.ts"),
);

test.each(patches)("%s names the release of the library that it was made for, which is the one installed", (name) => {
  const [, library, version] =
    /Made for (@nats-io\/[a-z-]+) (\S+)\.$/m.exec(readFileSync(new URL(name, here), "utf8")) ?? [];
  expect(library, "a comment says: Made for @nats-io/… <version>.").toBeDefined();
  const manifest = new URL(`../../../node_modules/${library}/package.json`, here);
  const installed = JSON.parse(readFileSync(manifest, "utf8")).version;
  expect(installed, `${library} has changed: see whether ${name} is still needed, and still right`).toBe(version);
});

test("there are patches to look at", () => {
  expect(patches.length).toBeGreaterThan(2);
});

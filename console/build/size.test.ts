import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";

const built = join(import.meta.dirname, "../../gen/console");

/** What a browser fetches before the first screen is drawn: the page, what it names, and what that imports at once. */
function fetchedFirst(): string[] {
  const page = readFileSync(join(built, "index.html"), "utf8");
  const found = [...page.matchAll(/(?:src|href)="(?:\/console\/|\.\/)([^"]+)"/g)].map(([, name = ""]) => name);
  for (const name of found) {
    const code = name.endsWith(".js") ? readFileSync(join(built, name), "utf8") : "";
    for (const [, imported = ""] of code.matchAll(/\bimport[^("';]*["']\.\/([^"']+)["']/g))
      if (!found.includes(imported)) found.push(imported);
  }
  return ["index.html", ...found];
}

it("ORCH-12 the first screen is at most 70 KB, packed", () => {
  const names = fetchedFirst();
  expect(names).toContain("first.js");
  const bytes = names.reduce((sum, name) => sum + gzipSync(readFileSync(join(built, name))).length, 0);
  expect(bytes).toBeGreaterThan(30_000);
  expect(bytes).toBeLessThanOrEqual(70_000);
});

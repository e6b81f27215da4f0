import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { invocationOf } from "./invocation.ts";

const npx = { npm_command: "exec", npm_lifecycle_event: "npx" };

test("PROD-2 a command that is printed is called as the one was that prints it", () => {
  expect(invocationOf("/usr/bin/toolbus", {})).toBe("toolbus");
  expect(invocationOf("/home/me/app/node_modules/.bin/toolbus", { npm_lifecycle_event: "start" })).toBe("toolbus");
  expect(invocationOf("/home/me/app/node_modules/.bin/toolbus", npx)).toBe("npx toolbus");
  expect(invocationOf("/nowhere/_npx/1f/node_modules/.bin/toolbus", npx)).toBe("npx toolbus");
});

test.each([
  ["^0.2.0", "toolbus"],
  ["file:../../toolbus-0.2.0.tgz", "toolbus-0.2.0.tgz"],
])("PROD-2 of a package that npx keeps for itself as %s, what npx was given is named", async (spec, named) => {
  const root = await mkdtemp(join(tmpdir(), "toolbus-npx-"));
  await using _ = { [Symbol.asyncDispose]: () => rm(root, { recursive: true }) };
  const folder = join(root, "_npx", "1f");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), JSON.stringify({ dependencies: { toolbus: spec } }));
  const program = join(folder, "node_modules", ".bin", "toolbus");
  expect(invocationOf(program, npx)).toBe(`npx ${named === "toolbus" ? named : `file:${join(root, named)}`}`);
});

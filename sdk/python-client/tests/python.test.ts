import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const library = join(root, "sdk/python-client");

test("DOOR-5 the library for Python passes its own tests", async () => {
  const project = await readFile(join(library, "pyproject.toml"), "utf8");
  const [, list = ""] = /^dependencies = (\[.*\])$/m.exec(project) ?? [];
  const packages = (JSON.parse(list) as string[]).filter((name) => name !== "toolbus-contract");
  const python = ["--python", ">=3.10", ...packages.flatMap((name) => ["--with", name]), "python", "-B"];
  await using child = await openChildProcess({
    command: process.env.TOOLBUS_UV ?? "uv",
    args: ["run", "-q", "--no-project", ...python, "-m", "unittest", "discover", "-s", join(library, "tests")],
    env: { ...process.env, PYTHONPATH: `${library}:${join(root, "gen/python")}` },
  });
  const exit = await child.exited;
  expect(exit.stderrTail).toMatch(/Ran \d+ tests.*OK$/s);
  expect(exit.code).toBe(0);
});

import { chmod, mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installEnvironment } from "./environment.ts";

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-environment-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Makes the environment that it is asked for, with a Python that does nothing. */
const uvScript = (cache: string) => `#!/bin/sh
if [ "$1" = cache ]; then echo ${cache}; exit; fi
mkdir -p "$VIRTUAL_ENV/bin"
: > "$VIRTUAL_ENV/bin/python"
echo "{\\"sync\\":{\\"environment\\":{\\"python\\":{\\"path\\":\\"$VIRTUAL_ENV/bin/python\\"}}}}"
`;

test("environments that nobody uses are removed, and one that another pool removes meanwhile fails no install", async () => {
  const uv = join(directory, "uv");
  const cache = join(directory, "cache");
  await writeFile(uv, uvScript(cache));
  await chmod(uv, 0o755);
  const path = join(directory, "tool.py");
  const install = (letter: string) =>
    installEnvironment({
      uv,
      file: { path, environment: letter.repeat(64) },
      environment: {},
      confinement: undefined,
      timeoutMs: 10_000,
      signal: new AbortController().signal,
      onLine: () => {},
    });
  const environments = join(cache, "environments-v2");
  await install("a");
  const [first = ""] = await readdir(environments);
  const placeOf = (letter: string) => join(environments, first.replace(/a{16}$/, letter.repeat(16)));
  // Listed, and not there when it is looked at: as a directory that is removed in between.
  await symlink(join(directory, "gone"), placeOf("b"));
  await mkdir(placeOf("c"));
  for (const letter of ["a", "c"]) await utimes(placeOf(letter), 0, 0);

  expect(await install("d")).toBe(join(placeOf("d"), "bin", "python"));
  expect((await readdir(environments)).sort()).toEqual(
    [placeOf("b"), placeOf("d")].map((it) => it.slice(environments.length + 1)),
  );
});

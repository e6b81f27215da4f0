import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withSecretFiles } from "./secret-files.ts";

test("SEC-3 files of the secrets directory are variables, and a variable that is set wins", async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-secrets-"));
  await using _ = { [Symbol.asyncDispose]: () => rm(directory, { recursive: true }) };
  await mkdir(join(directory, "..2026"));
  const files = {
    TOOLBUS_SECRET_A: "from file\n",
    TOOLBUS_SECRET_B: "two\nlines\n",
    OPENAI_API_KEY: " k",
    "not.one": "x",
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  const own = { TOOLBUS_SECRETS_DIRECTORY: directory, TOOLBUS_SECRET_A: "from variable", TOOLBUS_SECRET_B: "" };
  expect(withSecretFiles(own)).toEqual({
    TOOLBUS_SECRETS_DIRECTORY: directory,
    TOOLBUS_SECRET_A: "from variable",
    TOOLBUS_SECRET_B: "two\nlines",
    OPENAI_API_KEY: " k",
  });
});

test("SEC-3 a secrets directory that cannot be read is refused by its name", () => {
  const read = () => withSecretFiles({ TOOLBUS_SECRETS_DIRECTORY: "/nowhere/at/all" });
  expect(read).toThrow('TOOLBUS_SECRETS_DIRECTORY is "/nowhere/at/all", which cannot be read');
  expect(withSecretFiles({ A: "b" })).toEqual({ A: "b" });
});

import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
const execute = promisify(execFile);
const toolbus = async (...args: string[]) => (await execute(process.execPath, [main, ...args])).stdout;

test.each([
  ["the beginning of a command", ["ru"], /^run\tRun an agent.*\nruns\t/],
  ["the beginning of a command in a command", ["runs", "f"], /^fork\t/],
  ["the beginning of an option", ["runs", "list", "--st"], /^--state\t/],
  ["a command of the last ones", ["comple"], /^completion\t/],
])("CLI a shell that completes is told %s", async (_, words, expected) => {
  expect(await toolbus("complete", "--", ...words)).toMatch(expected);
});

test.each([
  ["bash", "complete -F"],
  ["zsh", "#compdef toolbus"],
  ["fish", "complete -c toolbus"],
  ["powershell", "Register-ArgumentCompleter"],
])("CLI there is a script for %s", async (shell, line) => {
  expect(await toolbus("completion", shell)).toContain(line);
});

test("CLI bash completes what one has begun to write", async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-test-completion-"));
  try {
    await writeFile(join(directory, "toolbus"), `#!/bin/sh\nexec ${process.execPath} ${main} "$@"\n`);
    await chmod(join(directory, "toolbus"), 0o755);
    await writeFile(join(directory, "script"), await toolbus("completion", "bash"));
    // As the package bash-completion has it.
    const words = `_get_comp_words_by_ref() { words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=\${COMP_WORDS[COMP_CWORD]}; }`;
    const begun = "COMP_WORDS=(toolbus runs can); COMP_CWORD=2; compopt() { :; }";
    const script = `${words}; source ${directory}/script; ${begun}; __toolbus_complete; echo "\${COMPREPLY[@]}"`;
    const env = { ...process.env, PATH: `${directory}:${process.env.PATH}` };
    const { stdout } = await execute("bash", ["-c", script], { env });
    expect(stdout.trim()).toMatch(/^cancel\b/);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("CLI an unknown shell is refused with those that there are", async () => {
  await expect(toolbus("completion", "tcsh")).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining("fish"),
  });
});

import { execFile } from "node:child_process";
import { access, chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bashScript } from "./bash-script.ts";

/** Says what it was asked, as a value, and what the command would say. */
const command = `#!/bin/sh
shift 2
printf 'asked:%s\\n' "$#:$*"
printf 'cancel\\tCancel a run.\\nclose\\tClose it: $(RUN)\\n$(RUN)\\t\\n:4\\n'
`;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-test-bash-"));
  await writeFile(join(directory, "toolbus"), runningIn(command));
  await chmod(join(directory, "toolbus"), 0o755);
  await writeFile(join(directory, "script"), bashScript("toolbus"));
});
afterEach(() => rm(directory, { recursive: true }));

const runningIn = (text: string) => text.replaceAll("RUN", `touch ${directory}/run`);
const wasRun = () =>
  access(join(directory, "run")).then(
    () => true,
    () => false,
  );

/** As the package bash-completion has it. */
const byReference = `_get_comp_words_by_ref() { words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=\${COMP_WORDS[COMP_CWORD]}; }`;

/** What bash offers at Tab in the last of the words that are typed. */
async function offeredAt(typed: readonly string[], before = ":"): Promise<string[]> {
  const words = typed.map((word) => `'${runningIn(word)}'`).join(" ");
  const begun = `COMP_WORDS=(toolbus ${words}); COMP_CWORD=${typed.length}`;
  const tab = `source ${directory}/script; ${begun}; __toolbus_complete; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const env = { ...process.env, PATH: `${directory}:${process.env.PATH}` };
  const { stdout } = await promisify(execFile)("bash", ["-c", `${before}; ${tab}`], { env });
  return stdout.split("\n").filter((line) => line !== "");
}

test.each([
  ["with the package bash-completion", byReference],
  ["without it", ":"],
])("CLI bash offers what begins as the word that is typed, %s", async (_, before) => {
  expect(await offeredAt(["runs", "c"], before)).toEqual(["cancel", "close"]);
  expect(await offeredAt(["runs", "asked"], before)).toEqual(["asked:2:runs asked"]);
  expect(await offeredAt(["a b", ""], before)).toContain("asked:2:a b ");
});

test.each([["$(RUN)"], ["`RUN`"], ["; RUN;"], ["a[$(RUN)]"]])(
  "SEC-7 bash runs nothing at Tab of what was typed: %s",
  async (word) => {
    for (const typed of [[word], ["runs", word, "can"], ["run", "demo", word]]) await offeredAt(typed, byReference);
    expect(await wasRun()).toBe(false);
  },
);

test("SEC-7 bash runs nothing at Tab of what it is offered", async () => {
  expect(await offeredAt(["runs", ""])).toContain(runningIn("$(RUN)"));
  expect(await wasRun()).toBe(false);
});

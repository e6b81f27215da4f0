import { relative, resolve } from "node:path";
import type { Command } from "commander";
import { invocation } from "../../faults/invocation.ts";
import { globalOptionsOf } from "../../global-options.ts";
import { quoted } from "../../printing/quoted.ts";
import { colors, printJson, printLine } from "../../printing/terminal.ts";
import { makeProject } from "../../project/template.ts";

export function addInitCommand(program: Command): void {
  program
    .command("init")
    .argument("[directory]", "the folder; it is made where there is none", ".")
    .description("Make a project: agents, a tool of each kind, and what editors need; files that exist stay")
    .action(init);
}

async function init(directory: string, _options: object, command: Command): Promise<void> {
  const path = resolve(directory);
  const { made, kept } = await makeProject(path);
  if (globalOptionsOf(command).json) return printJson({ directory: path, made, kept });
  for (const name of made) printLine(`${colors.green("made")}  ${name}`);
  for (const name of kept) printLine(`kept  ${name}`);
  const away = relative(process.cwd(), path);
  const folder = /^[\w./][\w./-]*$/.test(away) ? away : quoted(away);
  const enter = away === "" ? "" : `cd ${folder} && `;
  printLine(`\nStart it: ${enter}${invocation} up, then: ${invocation} run demo "hello"`);
}

import { script } from "@bomb.sh/tab";
import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";
import { askedBy } from "../../completing/asked.ts";
import { bashScript } from "../../completing/bash-script.ts";
import { globalOptionsOf } from "../../global-options.ts";
import { printText } from "../../printing/terminal.ts";

const name = "completion";

/** Adds `completion SHELL`, and what its script asks (`complete`). The program must have all its other commands. */
export function addCompletionCommand(program: Command): void {
  const completed = tab(program, { completionCommandName: name });
  program.commands
    .find((command) => command.name() === name)
    ?.action((shell: string) => {
      if (shell === "bash") printText(bashScript(program.name()));
      else script(shell, program.name(), program.name());
    })
    .description("Print a script that completes commands, options and names: for bash, zsh, fish or powershell")
    .addHelpText(
      "after",
      "\nbash, in ~/.bashrc:  source <(toolbus completion bash)\nzsh, in ~/.zshrc:    source <(toolbus completion zsh)",
    );
  // Its library asks for values at once: what they may be is known before it is asked.
  program.hook("preAction", async (_program, command) => {
    const asked = command.name() === "complete" ? askedBy(program, command.args) : undefined;
    if (asked === undefined) return;
    const { namesFromSuite } = await import("../../completing/names.ts");
    const names = await namesFromSuite(asked, globalOptionsOf(program));
    const offer = (complete: (value: string, description: string) => void) => {
      for (const one of names) complete(one, "");
    };
    for (const { arguments: positionals, options } of [completed, ...completed.commands.values()])
      for (const one of [...positionals.values(), ...options.values()]) one.handler = offer;
  });
}

import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";

const name = "completion";

/** Adds `completion SHELL`, and what its script asks (`complete`). The program must have all its other commands. */
export function addCompletionCommand(program: Command): void {
  tab(program, { completionCommandName: name });
  program.commands
    .find((command) => command.name() === name)
    ?.description("Print a script that completes commands and options: for bash, zsh, fish or powershell")
    .addHelpText(
      "after",
      "\nbash, in ~/.bashrc:  source <(toolbus completion bash)\nzsh, in ~/.zshrc:    source <(toolbus completion zsh)",
    );
}

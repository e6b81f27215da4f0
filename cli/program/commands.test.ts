import { Command } from "commander";
import { expect, test } from "vitest";
import { commands, nameOf } from "./commands.ts";

test.each(commands.map((command) => [nameOf(command), command] as const))(
  "the help lists %s as its own help does",
  async (name, { load, term, description }) => {
    const program = new Command("toolbus");
    (await load())(program);
    const help = program.createHelp();
    const [command, ...others] = help.visibleCommands(program).filter((shown) => shown.name() !== "help");
    expect(others).toEqual([]);
    expect(command?.name()).toBe(name);
    expect(command && help.subcommandTerm(command)).toBe(term);
    expect(command?.description()).toBe(description);
  },
);

import { Command } from "commander";
import { expect, test } from "vitest";
import { commands, nameOf } from "./commands.ts";

test.each(commands.map((command) => [nameOf(command), command] as const))(
  "the help lists %s as its own help does",
  async (name, { load, term, description }) => {
    const program = new Command("toolbus");
    (await load())(program);
    const [command] = program.commands;
    expect(program.commands).toHaveLength(1);
    expect(command?.name()).toBe(name);
    expect(command && program.createHelp().subcommandTerm(command)).toBe(term);
    expect(command?.description()).toBe(description);
  },
);

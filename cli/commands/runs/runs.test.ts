import { Command, CommanderError } from "commander";
import { expect, test } from "vitest";
import { addRunsCommand } from "./runs.ts";

/** What the command line is refused with, before anything is asked of a gateway. */
async function refusalOf(...words: string[]): Promise<string> {
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  addRunsCommand(program);
  const runs = program.commands[0];
  for (const command of runs?.commands ?? []) command.exitOverride().configureOutput({ writeErr: () => {} });
  const error: unknown = await program.parseAsync(["runs", ...words], { from: "user" }).catch((thrown) => thrown);
  if (!(error instanceof CommanderError)) throw new Error("the command line was not refused", { cause: error });
  return error.message;
}

const notNumbers = ["-1", "1.5", "", "last", "4294967296", "99999999999"];
test.each(notNumbers)("a fork at what is no number of an event is refused in words: %j", async (at) => {
  expect(await refusalOf("fork", "run_x", `--at=${at}`)).toMatch(/--at .* expected a whole number/);
});

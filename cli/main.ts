#!/usr/bin/env node
import { Command, InvalidArgumentError, Option } from "commander";
import { addAgentsCommand } from "./commands/agents.ts";
import { addAnswerCommand } from "./commands/answer.ts";
import { addAuditCommand } from "./commands/audit.ts";
import { addCallCommand } from "./commands/call.ts";
import { addCallsCommand } from "./commands/calls.ts";
import { addExplainCommand } from "./commands/explain.ts";
import { addInboxCommand } from "./commands/inbox.ts";
import { addRunCommand } from "./commands/runs/run.ts";
import { addRunsCommand } from "./commands/runs/runs.ts";
import { addServeCommand } from "./commands/serve.ts";
import { addSessionsCommand } from "./commands/sessions.ts";
import { addSpacesCommand } from "./commands/spaces.ts";
import { addToolsCommand } from "./commands/tools.ts";
import { addUpCommand } from "./commands/up.ts";
import { addWatchCommand } from "./commands/watch.ts";
import { defaultUrl, globalOptionsOf } from "./connection.ts";
import { exitCodes, toldFromError } from "./fault.ts";
import { colors } from "./printing/print.ts";

const program = new Command("toolbus")
  .description("Tools for agents: every kind behind one contract, on one bus")
  .version("0.1.0")
  .addOption(
    new Option("-u, --url <url>", "address of the suite's gateway")
      .env("TOOLBUS_URL")
      .default(defaultUrl)
      .argParser(httpUrl),
  )
  .addOption(new Option("--api-key <key>", "key for the gateway").env("TOOLBUS_API_KEY"))
  .option("--json", "print JSON lines in the contract's form")
  .addHelpText(
    "after",
    `
Exit codes:
  0    done
  1    a run that did not complete, a tool that answered with an error, a service that failed
  2    a command, an option or an argument that does not fit
  3    no gateway answers at the address
  130  ended by Ctrl-C

Examples:
  toolbus up                                       start everything
  toolbus run demo "hello"                         run an agent and watch it
  toolbus runs replay ID                           what a run did, turn by turn
  toolbus tools --agent demo                       what it can call
  toolbus call @qr/encode '{"text":"hi"}' -a demo  call one tool as it would
  toolbus spaces send demo "hello"                 speak to the people and agents in a space
  toolbus audit --since 10m --follow               what the suite decides`,
  );

for (const addCommand of [
  addUpCommand,
  addRunCommand,
  addRunsCommand,
  addToolsCommand,
  addCallCommand,
  addCallsCommand,
  addWatchCommand,
  addAgentsCommand,
  addSessionsCommand,
  addAnswerCommand,
  addSpacesCommand,
  addInboxCommand,
  addExplainCommand,
  addAuditCommand,
  addServeCommand,
]) {
  addCommand(program);
}
program.commands.forEach(exitOnUsage);
process.stdout.on("error", endWithoutReader);

try {
  await program.exitOverride().parseAsync();
} catch (error) {
  end(error);
}
// A stream that was left in its middle may keep its socket open, which must not keep a command that is done.
process.stdout.write("", () => process.exit());

/** Commander's own faults have been printed; all others are told here, in one sentence. */
function end(error: unknown): void {
  if (error instanceof Error && "exitCode" in error && "code" in error && String(error.code).startsWith("commander.")) {
    process.exitCode = error.exitCode === 0 ? exitCodes.success : exitCodes.usage;
    return;
  }
  const { message, exitCode } = toldFromError(error, globalOptionsOf(program).url);
  process.stderr.write(`${colors.red("toolbus:")} ${message}\n`);
  process.exitCode = exitCode;
}

/** `toolbus watch … | head` has read enough: that is no failure. */
function endWithoutReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit(exitCodes.success);
}

function httpUrl(text: string): string {
  if (!/^https?:$/.test(URL.parse(text)?.protocol ?? ""))
    throw new InvalidArgumentError(`expected one like ${defaultUrl}`);
  return text;
}

function exitOnUsage(command: Command): void {
  command.exitOverride();
  command.commands.forEach(exitOnUsage);
}

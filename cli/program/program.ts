// The command `toolbus`: its options, its commands, and how it ends.

import { Command, Help, InvalidArgumentError, Option } from "commander";
import { VERSION } from "#runtime/config/version.ts";
import { exitCodes } from "../faults/exit-codes.ts";
import { refuseUnknownSubcommands, withMeantChoice } from "../faults/meant.ts";
import { defaultUrl, faultOfKey, globalOptionsOf, ownSuite } from "../global-options.ts";
import { colors, printError } from "../printing/terminal.ts";
import { dropEmptyOptions, loadProjectVariables } from "../project/project.ts";
import { ASKS_NOBODY, commandIn } from "./command-word.ts";
import { commands, nameOf } from "./commands.ts";

const words = process.argv.slice(2);
dropEmptyOptions();
// They are for services. A command that only asks would send the user's key wherever the `.env` of a folder says.
const unread = ["up", "dev", "serve", "doctor"].includes(commandIn(words) ?? "") ? loadProjectVariables() : undefined;

const program = new Command("toolbus")
  .description("Tools for agents: every kind behind one contract, on one bus")
  .version(VERSION)
  .addOption(
    new Option("-u, --url <url>", "address of the suite's gateway")
      .env("TOOLBUS_URL")
      .default(ownSuite()?.url || defaultUrl)
      .argParser(httpUrl),
  )
  .addOption(
    new Option("--api-key <key>", "key for the gateway; that of a suite in .toolbus is found by itself")
      .env("TOOLBUS_API_KEY")
      .argParser(key),
  )
  .addOption(
    new Option("--context <name>", "use the address and key that `toolbus context set` has kept").env(
      "TOOLBUS_CONTEXT",
    ),
  )
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
  toolbus init                                     make a project in this folder
  toolbus up                                       start everything
  toolbus run demo "hello"                         run an agent and watch it
  toolbus runs replay ID                           what a run did, turn by turn
  toolbus tools --agent demo                       what it can call
  toolbus call @qr/encode '{"text":"hi"}' -a demo  call one tool as it would
  toolbus answers                                  what waits for a person, and how to answer it
  toolbus audit --since 10m --follow               what the suite decides`,
  );

program.configureOutput({ outputError: (text, write) => write(withMeantChoice(text)) });
program.hook("preAction", takeContext);
await addCommands(words);
program.commands.forEach(exitOnUsage);
process.stdout.on("error", endUnwritten);

try {
  if (unread) throw unread;
  await program.exitOverride().parseAsync();
} catch (error) {
  await end(error);
}
// A stream that was left in its middle may keep its socket open, which must not keep a command that is done.
process.stdout.write("", () => {
  if (process.stdout.errored) endUnwritten(process.stdout.errored);
  process.exit();
});

/** What is given as an option stands above what the environment says, and a context above the variables of address and key. */
async function takeContext(): Promise<void> {
  const { context } = program.opts<{ context?: string }>();
  const isOption = (name: string) => program.getOptionValueSource(name) === "cli";
  const command = commandIn(words) ?? "";
  const elsewhere = ["context", ...(command === "down" ? ["url"] : [])].find(isOption);
  if (ASKS_NOBODY.has(command) && elsewhere !== undefined)
    program.error(`error: toolbus ${command} is for this machine: it takes no --${elsewhere}`);
  if (!context || ASKS_NOBODY.has(command)) return;
  if (isOption("url") && isOption("context")) program.error("error: give either --context or --url");
  if (isOption("url")) return;
  const { contextNamed } = await import("../project/contexts.ts");
  const { url, apiKey } = contextNamed(context);
  program.setOptionValueWithSource("url", url, "config");
  if (!isOption("apiKey")) program.setOptionValueWithSource("apiKey", apiKey, "config");
}

/** The commands that are named are loaded; of the others the help needs a line. A shell that completes asks of all (`complete`). */
async function addCommands(words: readonly string[]): Promise<void> {
  const terms = new Map<Command, string>();
  const isCompleting = words[0] === "complete";
  for (const command of commands) {
    const name = nameOf(command);
    if (isCompleting || words.includes(name)) (await command.load())(program);
    else terms.set(program.command(name).description(command.description), command.term);
  }
  const help = new Help();
  program.configureHelp({ subcommandTerm: (command) => terms.get(command) ?? help.subcommandTerm(command) });
}

/** Commander's own faults have been printed; all others are told here, in one sentence. */
async function end(error: unknown): Promise<void> {
  if (error instanceof Error && "exitCode" in error && "code" in error && String(error.code).startsWith("commander.")) {
    process.exitCode = error.exitCode === 0 ? exitCodes.success : exitCodes.usage;
    return;
  }
  const { toldFromError } = await import("../faults/fault.ts");
  const { suggestAgent } = await import("../faults/suggestions.ts");
  const options = globalOptionsOf(program);
  const { message, exitCode } = toldFromError(error, options.url);
  const [fault = "", ...advice] = message.split("\n");
  const meant = await suggestAgent(error, options);
  printError(`${colors.red("toolbus:")} ${[meant ? `${fault} ${meant}` : fault, ...advice].join("\n")}`);
  process.exitCode ??= exitCode; // unless Ctrl-C came first
}

/** `toolbus watch … | head` has read enough: that is no failure. A disk that is full is one. */
function endUnwritten(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") process.exit(exitCodes.success);
  printError(`${colors.red("toolbus:")} the output cannot be written: ${error.message}`);
  process.exit(exitCodes.failure);
}

function httpUrl(text: string): string {
  if (!/^https?:$/.test(URL.parse(text)?.protocol ?? ""))
    throw new InvalidArgumentError(`expected one like ${defaultUrl}`);
  return text;
}

function key(text: string): string {
  const fault = faultOfKey(text);
  if (fault !== undefined) throw new InvalidArgumentError(fault);
  return text;
}

function exitOnUsage(command: Command): void {
  command.exitOverride();
  refuseUnknownSubcommands(command);
  command.commands.forEach(exitOnUsage);
}

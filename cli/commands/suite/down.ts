import { type Command, Option } from "commander";
import { isSameProcessAlive } from "#runtime/bus/nats-server/process-identity.ts";
import { until } from "#runtime/time/until.ts";
import { printLine, printNote } from "../../printing/print.ts";
import { stateDirectory } from "../../project/project.ts";
import { suiteIn } from "../../suite/keys/key.ts";

/** Longer than what is in flight is given to finish. */
const PATIENCE_MS = 120_000;

export function addDownCommand(program: Command): void {
  program
    .command("down")
    .description("Stop the suite of this machine that `up` or `dev` started, once what is in flight is finished")
    .addOption(
      new Option("--directory <path>", "where the suite keeps its state")
        .env("TOOLBUS_DIRECTORY")
        .default(stateDirectory(), "`.toolbus` of the project"),
    )
    .action(down);
}

async function down({ directory }: { directory: string }): Promise<void> {
  const suite = suiteIn(directory);
  if (suite === undefined) return printNote(`no suite of ${directory} is up`);
  if (suite.isStopping) printNote(`the suite of ${directory} stops already: what is in flight is finished first`);
  else process.kill(suite.pid, "SIGTERM"); // a second one would end it at once
  const isGone = () => !isSameProcessAlive(suite);
  const name = suite.url === "" ? `the suite of ${directory}` : `the suite at ${suite.url}`;
  const what = `${name} (process ${suite.pid}) to stop`;
  await until(isGone, { timeoutMs: PATIENCE_MS, what });
  printLine(`${name} is down`);
}

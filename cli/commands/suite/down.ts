import type { Command } from "commander";
import { isSameProcessAlive } from "#runtime/bus/nats-server/process-identity.ts";
import { until } from "#runtime/time/until.ts";
import { directoryOption, type GlobalOptions } from "../../global-options.ts";
import { printJson, printLine, printNote } from "../../printing/print.ts";
import { suiteIn } from "../../suite/keys/key.ts";

/** Longer than what is in flight is given to finish. */
const PATIENCE_MS = 120_000;

export function addDownCommand(program: Command): void {
  program
    .command("down")
    .description("Stop the suite of this machine that `up` or `dev` started, once what is in flight is finished")
    .addOption(directoryOption("where the suite keeps its state"))
    .action(down);
}

async function down({ directory }: { directory: string }, command: Command): Promise<void> {
  const { json } = command.optsWithGlobals<GlobalOptions>();
  const suite = suiteIn(directory);
  if (suite === undefined) return json ? printJson({ directory }) : printNote(`no suite of ${directory} is up`);
  if (suite.state === "stopping")
    printNote(`the suite of ${directory} stops already: what is in flight is finished first`);
  let isAsked = false;
  const isGone = () => {
    if (!isSameProcessAlive(suite)) return true;
    const { pid, state } = suiteIn(directory) ?? {};
    if (isAsked || pid !== suite.pid || state === "stopping") return false; // a second signal would end it at once
    isAsked = process.kill(suite.pid, "SIGTERM"); // also a `dev` that has stopped to start again
    return false;
  };
  const name = suite.url === "" ? `the suite of ${directory}` : `the suite at ${suite.url}`;
  const what = `${name} (process ${suite.pid}) to stop`;
  await until(isGone, { timeoutMs: PATIENCE_MS, what });
  if (json) return printJson({ directory, url: suite.url, pid: suite.pid });
  printLine(`${name} is down`);
}

import { basename } from "node:path";
import { watch } from "chokidar";
import type { Command } from "commander";
import open from "open";
import type { AuditEvent } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { openConnection } from "../../connection.ts";
import { globalOptionsOf } from "../../global-options.ts";
import { textOfAuditEvent } from "../../printing/audit-printer.ts";
import { colors, printError, printLine, printNote } from "../../printing/terminal.ts";
import { filesOfStart, loadProjectVariables, projectDirectory } from "../../project/project.ts";
import { makeFilesOfStart } from "../../project/protected.ts";
import { announceSuite, suiteIn } from "../../suite/keys/key.ts";
import type { Suite } from "../../suite/suite.ts";
import { printLog } from "../../watching/log-watch.ts";
import { addSuiteOptions, runSuite, type SuiteOptions, stopSignal } from "./up.ts";

interface DevOptions extends SuiteOptions {
  open: boolean;
}

export function addDevCommand(program: Command): void {
  const dev = program
    .command("dev")
    .description("Start the suite to work on a project: open the console, show what happens, follow changes of files");
  addSuiteOptions(dev).option("--no-open", "leave the console closed").action(runDev);
}

/** Agents, tools and code are followed by the services; what they are started with asks for another start. */
async function runDev(options: DevOptions, command: Command): Promise<void> {
  const stop = stopSignal();
  let isFirst = true;
  while (!stop.aborted) {
    makeFilesOfStart(projectDirectory(), process.env); // their making is no change
    using restarting = openEnding(stop);
    await using files = watchFilesOfStart((name) => restarting.end(new Error(`${name} changed: starting again`)));
    await files.ready;
    try {
      await runSuite(options, command, restarting.signal, (suite) => {
        const isShown = suite.url !== "" && !globalOptionsOf(command).json;
        if (isFirst && options.open && isShown) openConsole(suite);
        isFirst = false;
        if (isShown) void showDecisions(suite, restarting.signal);
      });
    } catch (error) {
      if (!restarting.signal.aborted) {
        if (isFirst) throw error;
        await waitForMending(error, options.directory, restarting.signal);
      }
    }
    if (stop.aborted) return;
    printNote(messageFromUnknown(restarting.signal.reason));
    options.reset = false;
    const unread = loadProjectVariables();
    if (unread) throw unread;
    readVariablesAgain(command);
  }
}

/** Options that were not given follow their variables, which may have others in `.env` now. */
function readVariablesAgain(command: Command): void {
  for (const option of command.options) {
    const name = option.attributeName();
    if (option.envVar === undefined || command.getOptionValueSource(name) === "cli") continue;
    const text = process.env[option.envVar];
    const value = text === undefined ? option.defaultValue : (option.parseArg?.(text, undefined) ?? text);
    command.setOptionValueWithSource(name, value, text === undefined ? "default" : "env");
  }
}

/** What was right at the start is mended by whoever has just changed it. */
async function waitForMending(error: unknown, directory: string, signal: AbortSignal): Promise<void> {
  using _found = announceWaiting(directory, signal);
  printError(`${colors.red("not started:")} ${messageFromUnknown(error)}\nChange the file again, or end with Ctrl-C.`);
  await unlessAborted(new Promise<never>(() => {}), signal).catch(() => {}); // the change, or the end
}

/** So that `down` finds who waits. A suite that has the directory meanwhile keeps its record. */
function announceWaiting(directory: string, signal: AbortSignal): Disposable | undefined {
  try {
    return suiteIn(directory) === undefined ? announceSuite(directory, signal) : undefined;
  } catch {
    return undefined; // the directory is what cannot be used
  }
}

function watchFilesOfStart(changed: (name: string) => void): AsyncDisposable & { readonly ready: Promise<void> } {
  const watcher = watch(filesOfStart(), { ignoreInitial: true, awaitWriteFinish: { stabilityThreshold: 100 } });
  watcher.on("all", (_event, path) => changed(basename(path)));
  return {
    ready: new Promise((resolve) => void watcher.once("ready", resolve)),
    [Symbol.asyncDispose]: () => watcher.close(),
  };
}

/** The page asks for the key, which stands in no address. */
function openConsole({ url, apiKey }: Suite): void {
  if (apiKey !== undefined) printNote(`The console asks for this key: ${apiKey}`);
  open(`${url}/`).catch((error: unknown) => printNote(`no browser was opened: ${messageFromUnknown(error)}`));
}

async function showDecisions({ url, apiKey }: Suite, signal: AbortSignal): Promise<void> {
  const audit = openConnection({ url, apiKey }).client(AuditService);
  try {
    await printLog({
      open: (place) => audit.watchAuditEvents(place, { signal }),
      print: (event: AuditEvent) => printLine(textOfAuditEvent(event)),
    });
  } catch (error) {
    if (!signal.aborted) printNote(`what the suite decides is not shown any more: ${messageFromUnknown(error)}`);
  }
}

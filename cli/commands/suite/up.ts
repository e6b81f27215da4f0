import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { readServiceConfig } from "#runtime/config/service-config.ts";
import { collectGarbageOfStart } from "#runtime/lifecycle/node/heap.ts";
import { invocation } from "../../faults/invocation.ts";
import { directoryOption, globalOptionsOf } from "../../global-options.ts";
import { quoted } from "../../printing/quoted.ts";
import { colors, printJson, printLine, printNote } from "../../printing/terminal.ts";
import { onLossOfNpm } from "../../project/npm.ts";
import { foldersOfProject, projectDirectory } from "../../project/project.ts";
import { portNumber } from "../../requests/numbers.ts";
import { listServices } from "../../suite/service-names.ts";
import type { ServiceEvent } from "../../suite/services-process.ts";
import { openSuite, type Suite } from "../../suite/suite.ts";

export interface SuiteOptions {
  port: number;
  directory: string;
  nats?: string;
  only?: string[];
  sync: "default" | "always";
  isolate?: boolean;
  logs?: boolean;
  reset?: boolean;
  auth: boolean;
}

export function addUpCommand(program: Command): void {
  const up = program.command("up").description("Start the whole suite on this machine, NATS included, until Ctrl-C");
  addSuiteOptions(up).option("--logs", "print the services' logs").action(runUp);
}

/** How the suite of a machine is started. */
export function addSuiteOptions(command: Command): Command {
  return command
    .addOption(
      new Option("-p, --port <port>", "port of the gateway; 0 takes a free one")
        .env("TOOLBUS_HTTP_PORT")
        .argParser(portNumber)
        .default(7480),
    )
    .addOption(directoryOption("where the suite keeps its state, its key and its logs"))
    .option("--no-auth", "let every user and program of this machine in without a key")
    .addOption(new Option("--nats <url>", "use this NATS server instead of starting one").env("NATS_URL"))
    .addOption(new Option("--only <service...>", "start only these services").choices(listServices()))
    .option("--isolate", "give each service a process of its own: one that dies is started again alone")
    .addOption(
      new Option("--sync <class>", "what survives: `default` any process's end, `always` power loss too")
        .choices(["default", "always"])
        .default("default"),
    )
    .addOption(
      new Option(
        "--reset",
        "delete all that is stored in the directory first, for example by an older release",
      ).conflicts("nats"),
    );
}

async function runUp(options: SuiteOptions, command: Command): Promise<void> {
  const stop = stopSignal();
  try {
    await runSuite(options, command, stop);
  } catch (error) {
    if (!stop.aborted) throw error;
  }
}

/** Starts the suite, says where it is, and stops it when the signal aborts. */
export async function runSuite(
  options: SuiteOptions,
  command: Command,
  stop: AbortSignal,
  onReady: (suite: Suite) => void = () => {},
): Promise<void> {
  const startedAt = performance.now();
  const { json } = globalOptionsOf(command);
  // As the services read it: refused before any of them starts, and without the credentials that it may hold.
  const natsUrl = options.nats === undefined ? undefined : readServiceConfig({ NATS_URL: options.nats }).natsUrl;
  const say = (event: object, text: string) => (json ? printJson(event) : printNote(text));
  let isUp = false;
  await using suite = await openSuite({
    directory: options.directory,
    port: options.port,
    natsUrl: options.nats,
    services: options.only,
    isolate: options.isolate,
    reset: options.reset,
    auth: options.auth ? "key" : "none",
    syncInterval: options.sync,
    signal: stop,
    onProgress: (message) => say({ kind: "progress", message }, message),
    onEvent: (event) => {
      if (event.kind === "ended" && !isUp) return; // why is told at the end, and nothing is started again
      const text = textOfEvent(event, options.logs ?? false);
      if (text !== undefined) say(event, text);
    },
  });
  isUp = true;
  collectGarbageOfStart(); // this process only waits from here on
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  const durability = options.sync === "always" ? "power loss" : "the end of any process";
  if (json) printJson({ kind: "ready", url: suite.url, natsUrl: natsUrl ?? suite.nats.url, keyFile: suite.key?.path });
  else {
    const place = suite.url === "" ? ", without a gateway" : ` at ${colors.bold(suite.url)}`;
    // One write, so that who waits for the first line has the others too.
    printLine(
      [
        `${colors.green("toolbus is up")} after ${seconds} s${place}`,
        `What is acknowledged survives ${durability}. Logs are in ${options.directory}/logs. Ctrl-C stops it.`,
        ...(suite.url === "" ? [] : [...linesOfKey(suite), advice()]),
      ].join("\n"),
    );
  }
  onReady(suite);
  if (!stop.aborted) await once(stop, "abort");
}

/** What to do next, where the suite serves files of this project. */
function advice(): string {
  const project = projectDirectory();
  const { TOOLBUS_AGENTS: agents = "" } = foldersOfProject(project, process.env);
  if (!existsSync(agents) || readdirSync(agents).length === 0)
    return `There are no agents in ${project}: ${invocation} init makes some.`;
  const hasDemo = existsSync(join(agents, "demo.json"));
  return hasDemo ? `Try: ${invocation} run demo "hello"` : `Try: ${invocation} agents`;
}

/** The key itself is shown once, when it was made; and where the console is. */
function linesOfKey({ url, key }: Suite): string[] {
  if (key === undefined) return [`The console is at ${url}/`];
  const { path, isNew } = key;
  const curl = `curl -H "authorization: Bearer $(cat ${quoted(path)})" -H content-type:application/json -d '{}' ${url}/toolbus.agent.v1.AgentService/ListAgents`;
  const page = `The console is at ${url}/ and asks for the key.`;
  return isNew
    ? [
        `Its key is ${colors.bold(key.key)}`,
        `It is in ${path}, where the command toolbus finds it. Other clients send it: ${curl}`,
        page,
      ]
    : [`Its key is in ${path}`, page];
}

function textOfEvent(event: ServiceEvent, isVerbose: boolean): string | undefined {
  switch (event.kind) {
    case "started":
      return undefined;
    case "ready":
      return `  ${event.instance} ready (${event.durationMs} ms)`;
    case "ended":
      return event.asked ? undefined : colors.red(`  ${event.instance} ended (${event.how}) and is started again`);
    case "line":
      return isVerbose ? `${event.instance} | ${event.line}` : troubleIn(event);
  }
}

/** What an operator should see of a log without asking: warnings, errors, and that a service waits for NATS. */
function troubleIn({ instance, line }: { instance: string; line: string }): string | undefined {
  if (!/"level":"(warn|error|fatal)"|"kind":"waiting"/.test(line)) return undefined;
  try {
    const { msg, server, reason, err, faults } = JSON.parse(line) as {
      msg?: string;
      server?: string;
      reason?: string;
      err?: { message?: string };
      faults?: string[];
    };
    const why = reason ?? err?.message ?? faults?.map((fault) => `\n    ${fault}`).join("");
    const of = server === undefined ? "" : `@${server}: `;
    return colors.yellow(`  ${instance}: ${of}${msg}${why === undefined || msg?.includes(why) ? "" : `: ${why}`}`);
  } catch {
    return `  ${instance}: ${line}`; // no line of ours, but of a program that a service runs
  }
}

/** Aborts at the first signal; the second ends the process at once, and the services with it. So it does when npm is gone. */
export function stopSignal(): AbortSignal {
  const stopping = new AbortController();
  onLossOfNpm(() => {
    printNote("stopping: the npm that started it is gone");
    stopping.abort(new Error("npm is gone"));
  });
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(130);
      stopping.abort(new Error(`stopped by ${signal}`));
      printNote("stopping: what is in flight is finished first; Ctrl-C again ends it at once");
    });
  }
  return stopping.signal;
}

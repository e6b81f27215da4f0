import { once } from "node:events";
import { type Command, InvalidArgumentError, Option } from "commander";
import { readServiceConfig } from "#runtime/config/service-config.ts";
import { globalOptionsOf } from "../connection.ts";
import { colors, printLine, printNote } from "../print.ts";
import { listRooms } from "../suite/rooms.ts";
import type { ServiceEvent } from "../suite/service-process.ts";
import { openSuite } from "../suite/suite.ts";

interface Options {
  port: number;
  directory: string;
  nats?: string;
  only?: string[];
  sync: "default" | "always";
  logs?: boolean;
}

export function addUpCommand(program: Command): void {
  program
    .command("up")
    .description("Start the whole suite on this machine, NATS included, until Ctrl-C")
    .option("-p, --port <port>", "port of the gateway; 0 takes a free one", port, 7480)
    .option("--directory <path>", "where the suite keeps its state and logs", ".toolbus")
    .addOption(new Option("--nats <url>", "use this NATS server instead of starting one").env("NATS_URL"))
    .addOption(new Option("--only <service...>", "start only these services").choices(listRooms()))
    .addOption(
      new Option("--sync <class>", "what survives: `default` any process's end, `always` power loss too")
        .choices(["default", "always"])
        .default("default"),
    )
    .option("--logs", "print the services' logs")
    .action(up);
}

async function up(options: Options, command: Command): Promise<void> {
  const startedAt = performance.now();
  const stop = stopSignal();
  const { json } = globalOptionsOf(command);
  // As the services read it: refused before any of them starts, and without the credentials that it may hold.
  const natsUrl = options.nats === undefined ? undefined : readServiceConfig({ NATS_URL: options.nats }).natsUrl;
  const say = (event: object, text: string) => (json ? printLine(JSON.stringify(event)) : printNote(text));
  await using suite = await openSuite({
    directory: options.directory,
    port: options.port,
    natsUrl: options.nats,
    rooms: options.only,
    syncInterval: options.sync,
    onProgress: (message) => say({ kind: "progress", message }, message),
    onEvent: (event) => {
      const text = textOfEvent(event, options.logs ?? false);
      if (text !== undefined) say(event, text);
    },
  });
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  const durability = options.sync === "always" ? "power loss" : "the end of any process";
  if (json) printLine(JSON.stringify({ kind: "ready", url: suite.url, natsUrl: natsUrl ?? suite.nats.url }));
  else {
    printLine(`${colors.green("toolbus is up")} after ${seconds} s at ${colors.bold(suite.url)}`);
    printLine(`What is acknowledged survives ${durability}. Logs are in ${options.directory}/logs. Ctrl-C stops it.`);
    printLine(`Try: npx toolbus run demo "hello"${options.port === 7480 ? "" : ` --url ${suite.url}`}`);
  }
  await stop;
  printNote("stopping: what is in flight is finished first; Ctrl-C again ends it at once");
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
      return isVerbose || /"level":"(error|fatal)"/.test(event.line) ? `${event.instance} | ${event.line}` : undefined;
  }
}

/** Resolves at the first signal; the second ends the process at once, and the services with it. */
async function stopSignal(): Promise<void> {
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));
}

function port(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > 65_535) throw new InvalidArgumentError("expected 0 to 65535");
  return value;
}

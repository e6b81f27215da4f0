// Plays the cases by the runners of all libraries, against a suite of their own: `npx node sdk/cases/main.ts [typescript …]`.

import { fileURLToPath } from "node:url";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { textFromExit } from "#runtime/lifecycle/child-process/exit.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../cli/connection.ts";
import { colors, printLine, printNote } from "../../cli/printing/print.ts";
import { openSuite, type Suite } from "../../cli/suite/suite.ts";
import { PAGE_ORIGIN } from "./browser/origin.ts";
import { CUT_MS, openCuttingProxy } from "./runners/cutting-proxy.ts";
import { type Command, RUNNERS } from "./runners/runners.ts";

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
/** Long enough to fetch and build, the first time, what it needs. */
const TIMEOUT_MS = 300_000;

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(RUNNERS);
const unknown = wanted.filter((name) => RUNNERS[name] === undefined);
if (unknown.length > 0)
  throw new Error(`no library ${unknown.join(", ")}; there are ${Object.keys(RUNNERS).join(", ")}`);

type Door = Pick<Suite, "url" | "apiKey">;

async function runRunner(name: string, [command, ...args]: Command, { url, apiKey }: Door): Promise<void> {
  const env = { ...process.env, TOOLBUS_URL: url, TOOLBUS_API_KEY: apiKey };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  await using child = await openChildProcess({ command, args, env, signal, onStderrLine: printNote });
  for await (const line of child.lines()) printLine(line);
  const exit = await child.exited;
  if (exit.code === 0) return;
  printLine(colors.red(`${name} ${textFromExit({ ...exit, stderrTail: "" })}`)); // stderr is shown as it comes
  process.exitCode = 1;
}

const settings = {
  TOOLBUS_AGENTS: here("agents"),
  TOOLBUS_SCRIPTS: here("models"),
  TOOLBUS_TOOLS: here("tools"),
  TOOLBUS_CORS_ORIGINS: PAGE_ORIGIN,
};
for (const name of wanted) {
  const command = (await RUNNERS[name]?.()) ?? [""];
  await using suite = await openSuite({
    directory: `.toolbus/cases/${name}`,
    port: 0,
    reset: true,
    env: settings,
    onProgress: printNote,
  });
  const agents = openConnection(suite).client(AgentService);
  await until(() => agents.getAgent({ name: "teller" }).catch(() => undefined), {
    what: "the agents' files to be read",
  });
  printLine(colors.bold(`\n${name}`));
  await runRunner(name, command, suite);
  await using proxy = await openCuttingProxy(Number(new URL(suite.url).port));
  printLine(colors.bold(`\n${name}, connections cut after ${CUT_MS} ms`));
  await runRunner(name, command, { ...suite, url: proxy.url });
  printLine(`${proxy.cuts} connections were cut`);
}

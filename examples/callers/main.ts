// Runs the callers against a suite of their own: `npx node examples/callers/main.ts [typescript|python|go …]`.

import { fileURLToPath } from "node:url";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { textFromExit } from "#runtime/lifecycle/child-process/exit.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../cli/connection.ts";
import { colors, printLine, printNote } from "../../cli/printing/print.ts";
import { openSuite } from "../../cli/suite/suite.ts";

type Command = readonly [command: string, ...args: string[]];

const COMMANDS: Readonly<Record<string, () => Command | Promise<Command>>> = {
  typescript: () => [process.execPath, "caller.ts"],
  python: async () => [await findUv(), "run", "caller.py"],
  go: () => ["go", "run", "."],
};
/** Long enough to fetch and build, the first time, what it needs. */
const TIMEOUT_MS = 300_000;

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(COMMANDS);
const unknown = wanted.filter((name) => COMMANDS[name] === undefined);
if (unknown.length > 0)
  throw new Error(`no caller ${unknown.join(", ")}; there are ${Object.keys(COMMANDS).join(", ")}`);

const settings = { TOOLBUS_AGENTS: here("agents"), TOOLBUS_SCRIPTS: here("models") };
await using suite = await openSuite({
  directory: ".toolbus/callers",
  port: 0,
  reset: true,
  env: settings,
  onProgress: printNote,
});
const agents = openConnection(suite).client(AgentService);
await until(() => agents.getAgent({ name: "clerk" }).catch(() => undefined), { what: "the agent's file to be read" });
const env = { ...process.env, TOOLBUS_URL: suite.url, TOOLBUS_API_KEY: suite.apiKey };

for (const name of wanted) {
  const [command, ...args] = (await COMMANDS[name]?.()) ?? [""];
  printLine(colors.bold(`\n${name}`));
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  await using child = await openChildProcess({ command, args, cwd: here(name), env, signal, onStderrLine: printNote });
  for await (const line of child.lines()) printLine(line);
  const exit = await child.exited;
  const fault = exit.code === 0 ? undefined : textFromExit({ ...exit, stderrTail: "" }); // stderr is shown as it comes
  printLine(fault === undefined ? colors.green(`${name} ended well`) : colors.red(`${name} ${fault}`));
  if (fault !== undefined) process.exitCode = 1;
}

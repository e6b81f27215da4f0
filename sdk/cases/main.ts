// Plays the cases by the runners of all libraries, against a suite of their own: `npx node sdk/cases/main.ts [typescript …]`.

import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { textFromExit } from "#runtime/lifecycle/child-process/exit.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../cli/connection.ts";
import { colors, printLine, printNote } from "../../cli/printing/print.ts";
import { openSuite, type Suite } from "../../cli/suite/suite.ts";
import { projectRoot, runCommand } from "../../tools/gen/command.ts";
import { packLibrary } from "../../tools/pack/pack.ts";

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const CASES = here("cases.yaml");

type Command = readonly [command: string, ...args: string[]];

/** From here, and as a program of its users does it. */
const COMMANDS: Readonly<Record<string, () => Command | Promise<Command>>> = {
  typescript: () => [process.execPath, here("typescript/runner.ts"), CASES],
  python: async () => [...(await pythonRunner()), CASES],
  go: () => ["go", "run", "-C", here("go"), ".", CASES],
  "typescript-package": async () => [...(await openPackagedRunner()), CASES],
};
/** Long enough to fetch and build, the first time, what it needs. */
const TIMEOUT_MS = 300_000;
/** How long the proxy lets a connection live. */
const CUT_MS = 150;

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(COMMANDS);
const unknown = wanted.filter((name) => COMMANDS[name] === undefined);
if (unknown.length > 0)
  throw new Error(`no library ${unknown.join(", ")}; there are ${Object.keys(COMMANDS).join(", ")}`);

/** The library packed, installed where nothing else is, and run by the oldest Node that it is for, if that is on the PATH. */
async function openPackagedRunner(): Promise<readonly [command: string, ...args: string[]]> {
  const directory = join(projectRoot, ".toolbus/cases/project");
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const tarball = await packLibrary(join(projectRoot, ".toolbus/cases/library/toolbus"));
  const { version } = JSON.parse(await readFile(join(projectRoot, "node_modules/yaml/package.json"), "utf8"));
  await runCommand("npm", ["install", "--silent", "--no-audit", "--no-fund", tarball, `yaml@${version}`], {
    cwd: directory,
  });
  const bundle = { ssr: here("typescript/runner.ts"), outDir: join(directory, "dist"), target: "node20" };
  await build({ root: directory, logLevel: "warn", build: bundle, ssr: { external: ["toolbus", "yaml"] } });
  const own = join(projectRoot, "node_modules");
  const path = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.startsWith(own));
  const node = path.map((folder) => join(folder, "node")).find((file) => existsSync(file)) ?? process.execPath;
  printNote(`by Node ${(await runCommand(node, ["--version"], { cwd: directory })).trim()}`);
  return [node, join(directory, "dist/runner.js")];
}

/** The library and the contract as packages, installed where nothing else is. */
async function pythonRunner(): Promise<readonly [command: string, ...args: string[]]> {
  const uv = await findUv();
  const wheels = join(projectRoot, ".toolbus/cases/wheels");
  await rm(wheels, { recursive: true, force: true });
  for (const name of ["gen/python", "sdk/python-client"])
    await runCommand(uv, ["build", "--quiet", "--wheel", "--out-dir", wheels, name], { cwd: projectRoot });
  const built = (await readdir(wheels)).filter((name) => name.endsWith(".whl")).map((name) => join(wheels, name));
  const packages = [...built, "pyyaml"].flatMap((name) => ["--with", name]);
  return [uv, "run", "--quiet", "--no-project", "--python", ">=3.10", ...packages, "python", here("python/runner.py")];
}

/** Passes connections on to the gateway, and cuts each. */
async function openCuttingProxy(
  port: number,
): Promise<AsyncDisposable & { readonly url: string; readonly cuts: number }> {
  let cuts = 0;
  const listener = createServer((client) => {
    const server = connect(port, "127.0.0.1");
    for (const socket of [client, server]) socket.on("error", () => {}); // either end may go at any time
    client.pipe(server).pipe(client);
    const timer = setTimeout(() => {
      cuts += 1;
      client.destroy();
      server.destroy();
    }, CUT_MS);
    client.on("close", () => clearTimeout(timer));
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    get cuts() {
      return cuts;
    },
    async [Symbol.asyncDispose]() {
      listener.close();
    },
  };
}

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

const settings = { TOOLBUS_AGENTS: here("agents"), TOOLBUS_SCRIPTS: here("models"), TOOLBUS_TOOLS: here("tools") };
for (const name of wanted) {
  const command = (await COMMANDS[name]?.()) ?? [""];
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

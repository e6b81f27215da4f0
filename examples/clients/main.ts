// Runs the clients of other languages against a suite of their own: `npx node examples/clients/main.ts [python|go …]`.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { findUv } from "#runtime/bus/nats-server/find-uv.ts";
import { colors, printLine, printNote } from "../../cli/print.ts";
import { openSuite } from "../../cli/suite/suite.ts";

interface Client {
  command: string;
  args: string[];
  directory: string;
}

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

const clients: Record<string, () => Promise<Client>> = {
  python: async () => ({ command: await findUv(), args: ["run", "client.py"], directory: here("python") }),
  go: async () => ({ command: "go", args: ["run", "."], directory: here("go") }),
};

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(clients);
await using suite = await openSuite({ directory: ".toolbus/clients", port: 0, onProgress: printNote });

for (const name of wanted) {
  const client = await clients[name]?.();
  if (client === undefined)
    throw new Error(`there is no client "${name}"; there are ${Object.keys(clients).join(", ")}`);
  printLine(colors.bold(`\n${name}`));
  const exitCode = await run(client, suite.url);
  if (exitCode !== 0) process.exitCode = 1;
  printLine(exitCode === 0 ? colors.green(`${name} ended well`) : colors.red(`${name} ended with ${exitCode}`));
}

async function run({ command, args, directory }: Client, url: string): Promise<number> {
  const env = { ...process.env, TOOLBUS_URL: url };
  const child: ChildProcess = spawn(command, args, { cwd: directory, env, stdio: ["ignore", "inherit", "inherit"] });
  const [exitCode] = (await once(child, "exit")) as [number | null];
  return exitCode ?? 1;
}

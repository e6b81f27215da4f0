// `toolbus dev` in a project, as whoever works on one uses it.

import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { writeFiles } from "../../harness/agents/write-files.ts";
import { runCommand, type StartedCommand, startCommand } from "../../harness/commands/command.ts";
import { until } from "../../harness/commands/commands-at.ts";
import { descendantsOf, untilEnded } from "../../harness/processes.ts";
import { programOf } from "../../harness/programs.ts";

const agent = (name: string) => ({ name, model: { provider: "scripted", model: "hello" }, tools: { use: ["echo"] } });
const project = {
  "toolbus.yaml": "",
  "agents/first.json": agent("first"),
  "tools/echo.json": { name: "echo", executionType: "internal" },
  "scripts/hello.json": { turns: [{ calls: [{ name: "echo", arguments: { n: 1 } }] }, { text: "hi" }] },
  browser: '#!/bin/sh\necho "$1" > "$(dirname "$0")/opened"\n',
};

async function times(dev: StartedCommand, text: RegExp, count: number): Promise<void> {
  const found = () => [...`${dev.written.stdout}${dev.written.stderr}`.matchAll(new RegExp(text, "g"))].length >= count;
  await until(found, { what: `${text} ${count} times`, timeoutMs: 60_000 });
}

it("PROD-2 `dev` opens the console, tells what happens, follows files, and starts again where the start changed", async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-dev-"));
  await using _removed = {
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true, maxRetries: 20 }),
  };
  await writeFiles(directory, project);
  await chmod(join(directory, "browser"), 0o755);
  const installed = { program: programOf("cli/main"), cwd: directory };
  const env = { BROWSER: join(directory, "browser") };
  const toolbus = (...args: string[]) => runCommand(args, { installed });

  await using dev = startCommand(["dev", "--port", "0"], { installed, env });
  await times(dev, /toolbus is up/, 1);
  const [, url = ""] = /at (http:\S+)/.exec(dev.written.stdout) ?? [];
  const key = (await readFile(join(directory, ".toolbus", "keys", "local"), "utf8")).trim();
  await times(dev, new RegExp(`The console asks for this key: ${key}\n`), 1);
  expect(await until(() => readFile(join(directory, "opened"), "utf8").catch(() => undefined))).toBe(`${url}/\n`);

  expect(await toolbus("run", "first", "go", "--url", url)).toMatchObject({ exitCode: 0 });
  await times(dev, /permitted .*agent first, session \S+, tool echo/, 1);

  await writeFiles(directory, { "agents/second.json": agent("second") });
  await until(async () => (await toolbus("agents", "--url", url)).stdout.includes("second"));

  await writeFiles(directory, { ".env": "TOOLBUS_MCP_CALL_TIMEOUT=never\n" });
  await times(dev, /\.env changed: starting again/, 1);
  await times(dev, /not started: .*TOOLBUS_MCP_CALL_TIMEOUT/s, 1);
  await writeFiles(directory, {
    ".env": `TOOLBUS_MCP_CALL_TIMEOUT=9000\nTOOLBUS_DIRECTORY=${join(directory, "other")}\n`,
  });
  await times(dev, /toolbus is up/, 2);
  await times(dev, new RegExp(`Logs are in ${join(directory, "other")}/logs`), 1);
  await writeFiles(directory, { ".env": "TOOLBUS_DIRECTORY=\n" });
  await times(dev, /toolbus is up/, 3);
  await times(dev, new RegExp(`Logs are in ${join(directory, ".toolbus")}/logs`), 2);
  const environment = await readFile(`/proc/${dev.pid}/environ`, "utf8");
  expect(environment, "what it was started with is not there to read").not.toContain("BROWSER");

  const family = await descendantsOf(dev.pid);
  dev.signal("SIGINT");
  expect((await dev.ended).exitCode).toBe(0);
  await untilEnded(family);
});

it("PROD-2 `dev` without a gateway opens no console, and `down` finds it while it waits for a file to be mended", async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-dev-"));
  await using _removed = {
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true, maxRetries: 20 }),
  };
  await writeFiles(directory, project);
  await chmod(join(directory, "browser"), 0o755);
  const installed = { program: programOf("cli/main"), cwd: directory };
  const env = { BROWSER: join(directory, "browser") };
  await using dev = startCommand(["dev", "--port", "0", "--only", "spaces"], { installed, env });
  await times(dev, /toolbus is up/, 1);
  await writeFiles(directory, { "toolbus.yaml": "agents: nowhere\n" });
  await times(dev, /not started: .*there is no folder/s, 1);
  const second = await runCommand(["up", "--port", "0"], { installed });
  expect(second.stderr).toContain(`is starting, started by process ${dev.pid}`);
  const down = await runCommand(["down"], { installed });
  expect(down).toMatchObject({ exitCode: 0, stdout: `the suite of ${join(directory, ".toolbus")} is down\n` });
  expect((await dev.ended).exitCode).toBe(0);
  await expect(readFile(join(directory, "opened"), "utf8")).rejects.toThrow("ENOENT");
});

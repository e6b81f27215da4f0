// The package as who installs it has it: packed, below `node_modules`, where Node strips no types.

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { projectRoot } from "../../architecture/source-files.ts";
import { type CommandOptions, runCommand, startCommand } from "../../harness/commands/command.ts";

const run = promisify(execFile);
const stack = new AsyncDisposableStack();
let options: CommandOptions;

/** Packs and unpacks it beside the packages that it depends on, and programs that were fetched before. */
beforeAll(async () => {
  const cwd = await mkdtemp(join(tmpdir(), "toolbus-packed-"));
  stack.defer(() => rm(cwd, { recursive: true, force: true, maxRetries: 20 }));
  await run("npm", ["pack", "--pack-destination", cwd], { cwd: projectRoot });
  const [tarball = ""] = await readdir(cwd);
  await run("tar", ["-xzf", tarball], { cwd });
  for (const folder of ["node_modules", ".toolbus"]) await mkdir(join(cwd, folder));
  await rename(join(cwd, "package"), join(cwd, "node_modules", "toolbus"));
  const link = (...path: string[]) => symlink(join(projectRoot, ...path), join(cwd, ...path));
  for (const name of await readdir(join(projectRoot, "node_modules"))) await link("node_modules", name);
  for (const name of ["uv", "nats-server"]) await link(".toolbus", name);
  const program = join(cwd, "node_modules", "toolbus", "cli", "toolbus.js");
  const PATH = `${join(cwd, "node_modules", ".bin")}:${process.env.PATH}`;
  options = { env: { PATH, TOOLBUS_DIRECTORY: join(cwd, ".toolbus") }, installed: { program, cwd } };
  const agent = { name: "noter", tools: { use: ["@notes/*"] } };
  await writeFile(join(cwd, "noter.json"), JSON.stringify(agent));
}, 120_000);
afterAll(() => stack.disposeAsync());

describe("PROD-1 the packed package", () => {
  it("is started, lists the tools of an agent, calls one, and runs the agent", { timeout: 180_000 }, async () => {
    await using suite = startCommand(["up", "--port", "0"], options);
    const url = await until(() => /toolbus is up after [\d.]+ s at (http\S+)/.exec(suite.written.stdout)?.[1], {
      timeoutMs: 90_000,
      what: "the suite to be up",
    });
    expect(suite.written.stderr).not.toMatch(/Warning|ended/);
    const toolbus = (...args: string[]) => runCommand(["--url", url, ...args], options);
    expect((await toolbus("tools", "--agent", "demo")).stdout).toMatch(/@everything\/echo +mcp +callable/);
    const { stdout, stderr } = await toolbus("call", "qr", '{"text":"hi"}', "--agent", "demo");
    expect(JSON.parse(stdout), stderr).toMatchObject({ text: "hi" });
    expect(await toolbus("run", "demo", "hello")).toMatchObject({ exitCode: 0 });
    expect(await toolbus("agents", "apply", "noter.json")).toMatchObject({ exitCode: 0 });
    const noted = await toolbus("call", "@notes/remember", '{"text":"hi"}', "--agent", "noter");
    expect(noted.stdout, noted.stderr).toBe('{"notes":1}\n');
  });
});

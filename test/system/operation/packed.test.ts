// The package as who installs it has it: from its tarball and the registry, in an empty folder, with an empty home.

import { exec, spawn } from "node:child_process";
import { glob, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { suiteIn } from "../../../cli/suite/keys/key.ts";
import { faultsInLinks } from "../../../tools/check/texts/links.ts";
import { observeCommand, runCommand as runProgram } from "../../../tools/gen/command.ts";
import { type CommandOptions, runCommand, startCommand } from "../../harness/commands/command.ts";
import { installPackage } from "../../harness/installed-package.ts";
import { openModel } from "../fixtures/models/speaking-model.ts";

const stack = new AsyncDisposableStack();
let root: string;
let project: string;
let temporary: string;
let options: CommandOptions;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "toolbus-packed-"));
  stack.defer(() => rm(root, { recursive: true, force: true, maxRetries: 20 }));
  const { program, env, ...installed } = await installPackage(root);
  ({ project, temporary } = installed);
  options = { env, installed: { program, cwd: project } };
}, 240_000);
afterAll(() => stack.disposeAsync());

const toolbus = (...args: string[]) => runCommand(args, options);

/** What each command of the README prints, by its name, in their order. */
const printed = {
  init: /kept {2}agents\/demo\.json/,
  dev: /toolbus is up/,
  run: /The MCP server says "Echo: hello"/,
  tools: /@everything\/echo +mcp +callable/,
  call: /"text":"hi"/,
  "--help": /Usage: toolbus/,
  chat: /I have no need of tools\./,
};

describe("PROD-1 the packed package", () => {
  it("makes a project, which stays as it is when it is made again", async () => {
    await writeFile(join(project, ".gitignore"), "dist\n/.env");
    expect(await toolbus("init")).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining("made  agents/demo.json"),
    });
    await writeFile(join(project, "agents", "mine.json"), '{"$schema":"../schemas/agent.schema.json","name":"mine"');
    await writeFile(
      join(project, "agents", "demo.json"),
      (await readFile(join(project, "agents", "demo.json"), "utf8")).replace("Replays", "Plays"),
    );
    const again = await toolbus("init");
    const ignored = await readFile(join(project, ".gitignore"), "utf8");
    expect(ignored, "the keys stay out of a repository that has a list of its own").toBe(
      "dist\n/.env\n.toolbus/\nnode_modules/\n__pycache__/\n",
    );
    expect(again.stdout).toContain("kept  agents/demo.json");
    expect(await readFile(join(project, "agents", "demo.json"), "utf8")).toContain("Plays");
    await rm(join(project, "agents", "mine.json"));
  });

  it("serves it: an agent runs, and a tool of each kind answers", { timeout: 240_000 }, async () => {
    await using suite = startCommand(["up", "--port", "0"], options);
    await until(() => /toolbus is up after [\d.]+ s at (http\S+)/.exec(suite.written.stdout)?.[1], {
      timeoutMs: 120_000,
      what: "the suite to be up",
    });
    expect(suite.written.stderr).not.toMatch(/Warning|ended/);
    expect(suite.written.stdout).toContain('Try: toolbus run demo "hello"');
    expect(await toolbus("run", "demo", "hello")).toMatchObject({ exitCode: 0 });
    expect((await toolbus("tools", "--agent", "demo")).stdout).toMatch(/@everything\/echo +mcp +callable/);
    expect((await toolbus("complete", "--", "run", "de")).stdout, "names of the suite complete").toMatch(/^demo\t/);
    expect((await toolbus("agents")).stdout, "a hosted module is there without being declared").not.toContain(
      "no source",
    );
    const call = async (tool: string, args: string) => {
      const { stdout, stderr } = await toolbus("call", tool, args, "--agent", "assistant");
      return JSON.parse(stdout || JSON.stringify(stderr));
    };
    expect(await call("@qr/encode", '{"text":"hi"}')).toMatchObject({ text: "hi" });
    expect(await call("@notes/remember", '{"text":"hi"}')).toEqual({ notes: 1 });
    const inside = { ...options, installed: { ...options.installed, cwd: join(project, "agents") } } as CommandOptions;
    expect(await runCommand(["agents"], inside), "from a folder inside").toMatchObject({ exitCode: 0 });
    expect(suite.written.stdout + suite.written.stderr).not.toContain("no source");
  });

  it("SEC-1 knows the users of the bus without reading the contract, and they are those of the contract", async () => {
    const folder = join(project, "node_modules", "toolbus", "cli", "suite", "bus-users");
    const read = await runProgram(process.execPath, [join(folder, "bus-users-program.js")], { cwd: root });
    expect(JSON.parse(await readFile(join(folder, "bus-users.json"), "utf8"))).toEqual(JSON.parse(read));
  });

  it("PROD-3 ends the suite with the npx that started it", { timeout: 240_000 }, async () => {
    const npx = spawn("npx", ["toolbus", "up", "--port", "0"], {
      env: { ...process.env, ...options.env },
      cwd: project,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let told = "";
    for (const stream of [npx.stdout, npx.stderr])
      stream.on("data", (part: Buffer) => {
        told += part;
      });
    await until(() => /toolbus is up/.test(told), { timeoutMs: 120_000, what: "the suite to be up" }).catch(() => {
      expect.fail(`the suite is not up: ${told}`);
    });
    npx.kill("SIGTERM");
    const isGone = () => suiteIn(join(project, ".toolbus")) === undefined;
    await until(isGone, { timeoutMs: 40_000, what: "the suite to end" });
  });

  it("does what its README says, command by command", { timeout: 240_000 }, async () => {
    await using model = await openModel("I have no need of tools.");
    const page = await readFile(join(project, "node_modules", "toolbus", "README.md"), "utf8");
    const commands = [...page.matchAll(/^(npx toolbus .+?)(?: +#.*)?$/gm)].map(([, command = ""]) => command);
    const nameOf = (command: string) => command.split(" ")[2] as keyof typeof printed;
    expect(commands.map(nameOf)).toEqual(Object.keys(printed));
    await writeFile(join(project, ".env"), `OPENAI_API_KEY=key\nOPENAI_BASE_URL=${model.url}\n`);
    const env = { ...process.env, ...options.env, NO_COLOR: "1" };
    const typed = async (command: string) => (await promisify(exec)(command, { cwd: project, env })).stdout;
    await using dev = startCommand(["dev", "--port", "0"], { ...options, env: { ...options.env, BROWSER: "true" } });
    const isUp = until(() => printed.dev.test(dev.written.stdout), { timeoutMs: 120_000, what: "the suite to be up" });
    await Promise.race([isUp, dev.ended.then((how) => expect.fail(`it ended: ${JSON.stringify(how)}`))]);
    for (const command of commands) {
      const name = nameOf(command);
      if (name !== "dev")
        expect(await typed(name === "chat" ? `echo hi | ${command}` : command)).toMatch(printed[name]);
    }
    expect(await typed("npx toolbus down")).toContain("is down");
    await dev.ended;
  });

  it("PROD-3 leaves no file behind once it has ended, but what it remembers and the caches of uv and npm", async () => {
    const ofOthers = /^(uv-\w+\.lock|node-compile-cache)$/;
    expect((await readdir(temporary)).filter((name) => !ofOthers.test(name))).toEqual([]);
    const kept = [".gitignore", "bus", "keys", "logs", "nats"];
    expect((await readdir(join(project, ".toolbus"))).toSorted()).toEqual(kept);
  });

  it("has a README and pages whose links lead to what it brings", async () => {
    const folder = join(project, "node_modules", "toolbus");
    const paths = await Array.fromAsync(glob("**/*.*", { cwd: folder, exclude: ["node_modules/**"] }));
    expect(paths).toContain("README.md");
    const faults = await faultsInLinks(folder, [...paths, "LICENSE", "Dockerfile"]);
    expect(faults.filter((fault) => fault.includes("the link "))).toEqual([]);
  });

  it("DOOR-5 brings the module for Go, which a new module finds as its README says", { timeout: 240_000 }, async () => {
    const readme = await readFile(join(project, "node_modules", "toolbus", "sdk", "go", "README.md"), "utf8");
    const commands = /```sh\n([^`]+)```/.exec(readme)?.[1] ?? expect.fail("it has no commands");
    const program = `package main

import toolbus "toolbus.dev/sdk/go"

func main() { println(toolbus.New(toolbus.Options{}) != nil) }
`;
    const cwd = join(root, "go");
    await mkdir(cwd);
    await symlink(join(project, "node_modules"), join(cwd, "node_modules"));
    await writeFile(join(cwd, "main.go"), program);
    await runProgram("sh", ["-ec", `go mod init example.com/mine\n${commands}\ngo build -o mine .`], { cwd });
    expect((await observeCommand(join(cwd, "mine"), [], { cwd })).output.trim()).toBe("true");
  });

  it("DOOR-5 brings the library for Python, which pip installs as its README says", { timeout: 240_000 }, async () => {
    const readme = await readFile(
      join(project, "node_modules", "toolbus", "sdk", "python-client", "README.md"),
      "utf8",
    );
    const [command] = /pip install node_modules[^`]+/.exec(readme) ?? expect.fail("it has no command");
    const python = join(root, "python", "bin", "python");
    await runProgram("python3", ["-m", "venv", join(root, "python")], { cwd: project });
    await runProgram("sh", ["-ec", `${python} -m ${command}`], { cwd: project });
    const program = "from toolbus import Toolbus, tool; print(Toolbus('http://127.0.0.1:1').run.__name__)";
    expect((await runProgram(python, ["-c", program], { cwd: project })).trim()).toBe("run");
  });

  it("is a library with types, and stubs of the contract", async () => {
    const program = `
      import { createToolbus } from "toolbus";
      import { ToolService } from "toolbus/gen/tool/v1/tool_service_pb";
      import schema from "toolbus/schemas/agent.schema.json" with { type: "json" };
      console.log(typeof createToolbus, ToolService.typeName, schema.type);`;
    await writeFile(join(project, "library.mjs"), program);
    const told = await runProgram(process.execPath, ["library.mjs"], { cwd: project });
    expect(told.trim()).toBe("function toolbus.tool.v1.ToolService object");
    await writeFile(
      join(project, "typed.ts"),
      'import { createToolbus } from "toolbus";\nexport const wrong: number = createToolbus;\n',
    );
    const checked = await observeCommand(
      "tsc",
      ["--noEmit", "--module", "nodenext", "--skipLibCheck", "--ignoreConfig", join(project, "typed.ts")],
      {
        cwd: project,
      },
    );
    expect(checked.output).toMatch(/typed\.ts\(2,14\): error TS2322/);
    expect(checked.output.match(/error/g)).toHaveLength(1);
  });
});

describe("PROD-1 the command refuses", () => {
  it("a folder that the project names and that is not there, and a name that is none", async () => {
    const cwd = join(root, "wrong");
    await mkdir(cwd);
    const at = { ...options, installed: { ...options.installed, cwd } } as CommandOptions;
    await writeFile(join(cwd, "toolbus.yaml"), "agents: my-agents\n");
    const missing = await runCommand(["up", "--port", "0"], at);
    expect(missing).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`there is no folder ${join(cwd, "my-agents")}`),
    });
    await writeFile(join(cwd, "toolbus.yaml"), "agent: agents\n");
    const unknown = await runCommand(["up", "--port", "0"], at);
    expect(unknown).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/agent\b[\s\S]*agents, tools, workers, hosted, scripts, ui/),
    });
  });
});

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPackage } from "../../test/harness/installed-package.ts";
import { runCommand } from "../../tools/gen/command.ts";

export interface InstalledProject extends AsyncDisposable {
  /** The program `toolbus` of the package. */
  readonly program: string;
  /** What `toolbus init` makes. */
  readonly folder: string;
  /** The same with so many more agents and tools. */
  grown(agents: number, tools: number): Promise<string>;
}

/** A project in a folder of its own, with the package installed from its tarball. */
export async function openInstalledProject(): Promise<InstalledProject> {
  await using stack = new AsyncDisposableStack();
  const root = await mkdtemp(join(tmpdir(), "bench-start-"));
  stack.defer(() => rm(root, { recursive: true, force: true, maxRetries: 20 }));
  const { program } = await installPackage(root);
  const made = async (name: string) => {
    const folder = join(root, name);
    await runCommand(process.execPath, [program, "init", folder], { cwd: root });
    return folder;
  };
  const folder = await made("plain");
  const owned = stack.move();
  return {
    program,
    folder,
    async grown(agents, tools) {
      const large = await made("large");
      await Promise.all(Array.from({ length: tools }, (_, index) => writeTool(large, `tool_${index}`)));
      await Promise.all(Array.from({ length: agents }, (_, index) => writeAgent(large, `agent_${index}`, index)));
      return large;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function writeTool(folder: string, name: string): Promise<void> {
  const tool = {
    name,
    description: `Looks up what ${name} knows of a city`,
    inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    executionType: "gateway",
    visible: false,
    execution: { url: `https://example.com/${name}`, method: "GET" },
  };
  await mkdir(join(folder, "tools"), { recursive: true });
  await writeFile(join(folder, "tools", `${name}.json`), JSON.stringify(tool));
}

/** Each with twenty tools of its own. */
async function writeAgent(folder: string, name: string, index: number): Promise<void> {
  const use = Array.from({ length: 20 }, (_, own) => `tool_${index * 20 + own}`);
  const agent = { name, model: { provider: "scripted", model: "hello.json" }, tools: { use } };
  await writeFile(join(folder, "agents", `${name}.json`), JSON.stringify(agent));
}

import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { printNote } from "../../../cli/printing/print.ts";
import { projectRoot, runCommand } from "../../../tools/gen/command.ts";
import { packPackage } from "../../../tools/pack/pack.ts";

const here = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const CASES = here("cases.yaml");

export type Command = readonly [command: string, ...args: string[]];

/** What plays the cases, by the name of the library: from here, and as programs of its users do. */
export const RUNNERS: Readonly<Record<string, () => Command | Promise<Command>>> = {
  typescript: () => [process.execPath, here("typescript/runner.ts"), CASES],
  browser: () => [process.execPath, here("browser/runner.ts"), CASES],
  python: async () => [...(await pythonRunner()), CASES],
  go: () => ["go", "run", "-C", here("go"), ".", CASES],
  "typescript-package": async () => [...(await packagedRunner()), CASES],
};

/** The library packed, installed where nothing else is, and run by the oldest Node that it is for, if that is on the PATH. */
async function packagedRunner(): Promise<Command> {
  const directory = join(projectRoot, ".toolbus/cases/project");
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const tarball = await packPackage(join(projectRoot, ".toolbus/cases/package/toolbus"));
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
async function pythonRunner(): Promise<Command> {
  const uv = await findUv();
  const wheels = join(projectRoot, ".toolbus/cases/wheels");
  await rm(wheels, { recursive: true, force: true });
  for (const name of ["gen/python", "sdk/python-client"])
    await runCommand(uv, ["build", "--quiet", "--wheel", "--out-dir", wheels, name], { cwd: projectRoot });
  const built = (await readdir(wheels)).filter((name) => name.endsWith(".whl")).map((name) => join(wheels, name));
  const packages = [...built, "pyyaml"].flatMap((name) => ["--with", name]);
  return [uv, "run", "--quiet", "--no-project", "--python", ">=3.10", ...packages, "python", here("python/runner.py")];
}

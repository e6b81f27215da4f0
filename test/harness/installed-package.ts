import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { packagesDirectory } from "#runtime/config/places.ts";
import { runCommand } from "../../tools/gen/command.ts";
import { packPackage } from "../../tools/pack/pack.ts";
import { testedTarball } from "./programs.ts";

export interface InstalledPackage {
  /** Where it is installed, beside a package.json as `npm init` makes it. */
  readonly project: string;
  /** What starts the command `toolbus`. */
  readonly program: string;
  /** With an empty home, without what the sources have installed, and with what the project has. */
  readonly env: NodeJS.ProcessEnv;
  /** The directory for temporary files, empty. */
  readonly temporary: string;
}

/** Packs the package, and installs it from its tarball and the registry, all below a directory. */
export async function installPackage(directory: string): Promise<InstalledPackage> {
  const project = join(directory, "project");
  const home = join(directory, "home");
  const temporary = join(directory, "temporary");
  await Promise.all([project, home, temporary].map((folder) => mkdir(folder)));
  const tarball = testedTarball() ?? (await packPackage(join(directory, "toolbus")));
  await writeFile(join(project, "package.json"), '{"type":"commonjs"}');
  await runCommand("npm", ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", tarball], {
    cwd: project,
  });
  const modules = join(project, "node_modules");
  const others = (process.env.PATH ?? "").split(":").filter((folder) => !folder.startsWith(packagesDirectory));
  const PATH = [join(modules, ".bin"), ...others].join(":");
  return {
    project,
    program: join(modules, "toolbus", "cli", "toolbus.js"),
    env: { PATH, HOME: home, TMPDIR: temporary, XDG_CACHE_HOME: "", XDG_CONFIG_HOME: "" },
    temporary,
  };
}

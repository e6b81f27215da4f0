// `npm run release [-- DIRECTORY]`: builds and proves all packages, and publishes none of them.

import { join, resolve } from "node:path";
import { VERSION } from "#runtime/config/version.ts";
import { projectRoot, runCommand } from "../../gen/command.ts";
import { buildRelease } from "./release.ts";

const directory = resolve(process.argv[2] ?? join(projectRoot, ".toolbus", "package", VERSION));
try {
  const changed = await runCommand("git", ["status", "--porcelain"], { cwd: projectRoot });
  if (changed !== "") console.warn("what is not committed goes into the packages, too:", `\n${changed.trimEnd()}`);
  const artifacts = await buildRelease(directory, { onProgress: (message) => console.log(message) });
  for (const { name, bytes, sha256 } of artifacts) console.log(`${sha256}  ${name}  ${(bytes / 1_000).toFixed(0)} kB`);
  console.log(`toolbus ${VERSION} is in ${directory}; nothing was published`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

import { glob, readFile, writeFile } from "node:fs/promises";
import { join, sep } from "node:path";

const NAMES = "{LICENSE,LICENCE,COPYING,NOTICE,license,licence}{,.md,.txt,-MIT,.MIT}";

/** Writes the licenses of all packages of which modules are in a bundle. Throws with the name of one that brings none and names none. */
export async function writeLicenses(path: string, moduleIds: readonly string[]): Promise<void> {
  const folders = new Set(moduleIds.flatMap((id) => folderOfPackage(id) ?? []));
  const texts = await Promise.all([...folders].map(licenseOf));
  await writeFile(path, texts.sort().join(`\n${"-".repeat(80)}\n\n`));
}

/** Where the package of a module is; undefined for a module of ours. */
function folderOfPackage(id: string): string | undefined {
  const name = `${sep}node_modules${sep}`;
  const at = id.lastIndexOf(name);
  if (at === -1) return undefined;
  const start = at + name.length;
  const parts = id.slice(start).split(sep);
  return join(id.slice(0, start), ...parts.slice(0, parts[0]?.startsWith("@") ? 2 : 1));
}

async function licenseOf(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  if (typeof license !== "string") throw new Error(`the package ${name} does not say what its license is`);
  const paths = (await Array.fromAsync(glob(NAMES, { cwd: folder }))).sort();
  const texts = await Promise.all(paths.map((path) => readFile(join(folder, path), "utf8")));
  return `${name} ${version}, ${license}\n\n${texts.map((text) => text.trim()).join("\n\n")}\n`;
}

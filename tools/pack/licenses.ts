import { readdir, readFile, writeFile } from "node:fs/promises";
import { extname, join, sep } from "node:path";

/** A word of the name: `LICENSE-APACHE-2.0`, `MIT-LICENSE.txt`, `Licence.markdown`, `COPYING.LESSER`, `ThirdPartyNotices.txt`. */
const NAMES = /(un)?licen[cs]es?|copying|copyright|notices?/i;
/** A program of such a name is none, nor a list for programs. */
const PROGRAMS = new Set([".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".map", ".json", ".yml", ".yaml"]);

/** Whether a file's name says that it holds terms of use. */
export function isLicenseText(name: string): boolean {
  return NAMES.test(name) && !PROGRAMS.has(extname(name).toLowerCase());
}

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

/** What a package says of its license, and all texts that it brings beside its `package.json` or in a folder for them. */
export async function licenseOf(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  if (typeof license !== "string") throw new Error(`the package ${name} does not say what its license is`);
  const paths = (await textsIn(folder)).sort();
  const texts = await Promise.all(paths.map((path) => readFile(path, "utf8")));
  return `${name} ${version}, ${license}\n\n${texts.map((text) => text.trim()).join("\n\n")}\n`;
}

async function textsIn(folder: string): Promise<string[]> {
  const found = (await readdir(folder, { withFileTypes: true })).filter(({ name }) => isLicenseText(name));
  const inner = found.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
  const whole = await Promise.all(inner.map((path) => readdir(path, { withFileTypes: true })));
  return [...found, ...whole.flat()]
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

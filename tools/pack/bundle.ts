// What the package runs, in few files. A start of the sources loads 1,700 modules, of which finding each costs more than running it.

import { glob, readFile, rm } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { type Plugin, rolldown } from "rolldown";
import { packagesDirectory } from "#runtime/config/places.ts";
import { writeLicenses } from "./licenses.ts";

/** They start threads or load parts of themselves by their own places, or are loaded by few and only when asked for. */
export const LEFT_ALONE = ["piscina", "pino-pretty", "ajv", "ajv-formats"];

/** What is started or imported by its place, besides the modules that a call of `moduleBeside` names. */
const ENTRIES = ["cli/{toolbus,main}.js", "services/*/{main,config}.js"];
const BESIDE = /moduleBeside\(import\.meta, "([^"]+)"\)/g;

/** Written where a module asks for its own place, which is another in a bundle. */
const ROOT = "__PACKAGE__";

/**
 * Bundles compiled programs, with the packages that they use, into another directory: what has a place of its own there is found at
 * the same place.
 */
export async function bundlePrograms(compiled: string, directory: string): Promise<void> {
  await using build = await rolldown({
    input: await entriesOf(compiled),
    platform: "node",
    external: new RegExp(`^(${LEFT_ALONE.join("|")})(/|$)`),
    resolve: { modules: [packagesDirectory] },
    preserveEntrySignatures: "strict",
    plugins: [ownPlaces(compiled)],
    logLevel: "silent",
    experimental: { attachDebugInfo: "none" }, // which names the directory of the build
  });
  const { output } = await build.write({
    dir: directory,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
    comments: { legal: true, jsdoc: false, annotation: false },
  });
  const ids = output.flatMap((file) => (file.type === "chunk" ? file.moduleIds : []));
  await writeLicenses(join(directory, "THIRD-PARTY-LICENSES.txt"), ids);
  await rm(compiled, { recursive: true });
}

/** Each by its name, the path without the ending. */
async function entriesOf(compiled: string): Promise<Record<string, string>> {
  const paths = new Set(await Array.fromAsync(glob(ENTRIES, { cwd: compiled })));
  for await (const path of glob("{cli,runtime,services}/**/*.js", { cwd: compiled }))
    for (const [, name] of (await readFile(join(compiled, path), "utf8")).matchAll(BESIDE))
      paths.add(join(dirname(path), `${name}.js`));
  return Object.fromEntries([...paths].sort().map((path) => [path.replace(/\.js$/, ""), join(compiled, path)]));
}

/** A module of ours that asks where it is learns where it would be without the bundle. */
function ownPlaces(compiled: string): Plugin {
  return {
    name: "own-places",
    transform(code, id) {
      if (!id.startsWith(compiled + sep) || !/import\.meta\b(?!\.main)/.test(code)) return null;
      const url = `new URL(${JSON.stringify(relative(compiled, id))}, ${ROOT}).href`;
      return code.replaceAll("import.meta.url", url).replace(/import\.meta\b(?!\.main)/g, `{ url: ${url} }`);
    },
    renderChunk(code, { fileName }) {
      if (!code.includes(ROOT)) return null;
      const root = relative(dirname(fileName), ".") || ".";
      const declared = `const ${ROOT} = new URL(${JSON.stringify(`${root}/`)}, import.meta.url);`;
      const shebang = /^#!.*\n/.exec(code)?.[0] ?? "";
      return `${shebang}${declared}\n${code.slice(shebang.length)}`;
    },
  };
}

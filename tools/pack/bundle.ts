// What the package runs, in few files. A start of the sources loads 1,700 modules, of which finding each costs more than running it.

import { globSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { type CodeSplittingOptions, type Plugin, rolldown } from "rolldown";
import { packagesDirectory } from "#runtime/config/places.ts";
import { writeLicenses } from "./licenses.ts";

/** They start threads, load or run parts of themselves by their own places, or are loaded by few and only when asked for. */
export const LEFT_ALONE = ["piscina", "pino-pretty", "ajv", "ajv-formats", "open"];

/**
 * The command loads little of all that it can do, so its modules are split by what needs them together. What nearly all services
 * need is one file. The two share none: each would split the other's.
 */
const COMMAND = ["cli/{toolbus,main}.js", "services/*/config.js"];
const SERVICES = ["services/*/main.js", "cli/suite/services-program.js"];
const ONE_FILE: CodeSplittingOptions = { groups: [{ name: "services", tags: ["$initial"], minShareCount: 7 }] };

/** What is started or imported by its place, besides. */
const BESIDE = /moduleBeside\(import\.meta, "([^"]+)"\)/g;

/** Written where a module asks for its own place, which is another in a bundle. */
const ROOT = "__PACKAGE__";

/**
 * Bundles compiled programs, with the packages that they use, into another directory: what has a place of its own there is found at
 * the same place.
 */
export async function bundlePrograms(compiled: string, directory: string): Promise<void> {
  const services = globSync(SERVICES, { cwd: compiled });
  const others = modulesBeside(compiled).filter((path) => !services.includes(path));
  // One after the other: side by side, they would not be the same each time.
  const ids = [
    ...(await bundle(compiled, directory, globSync(COMMAND, { cwd: compiled }))),
    ...(await bundle(compiled, directory, services, ONE_FILE)),
  ];
  for (const path of others) ids.push(...(await bundle(compiled, directory, [path])));
  await writeLicenses(join(directory, "THIRD-PARTY-LICENSES.txt"), ids);
  await rm(compiled, { recursive: true });
}

/** Gives the ids of the modules that it has joined. */
async function bundle(
  compiled: string,
  directory: string,
  entries: readonly string[],
  codeSplitting: CodeSplittingOptions = {},
): Promise<string[]> {
  await using build = await rolldown({
    input: Object.fromEntries(entries.toSorted().map((path) => [path.replace(/\.js$/, ""), join(compiled, path)])),
    platform: "node",
    external: new RegExp(`^(${LEFT_ALONE.join("|")})(/|$)`),
    resolve: { modules: ["node_modules", packagesDirectory] }, // a package's own versions before ours
    preserveEntrySignatures: "strict",
    plugins: [ownPlaces(compiled)],
    logLevel: "silent",
    experimental: { attachDebugInfo: "none" }, // which names the directory of the build
  });
  const { output } = await build.write({
    dir: directory,
    format: "esm",
    charset: "ascii", // V8 keeps a file with one character beyond Latin-1 in two bytes a character
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
    comments: { legal: true, jsdoc: false, annotation: false },
    codeSplitting,
  });
  return output.flatMap((file) => (file.type === "chunk" ? file.moduleIds : []));
}

/** Paths in the directory. */
function modulesBeside(compiled: string): string[] {
  const paths = globSync("{cli,runtime,services}/**/*.js", { cwd: compiled });
  const named = paths.flatMap((path) => {
    const text = readFileSync(join(compiled, path), "utf8");
    return [...text.matchAll(BESIDE)].map(([, name]) => join(dirname(path), `${name}.js`));
  });
  return [...new Set(named)];
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

import { cp, glob, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { busUsers } from "../../services/bus-users.ts";
import { observeCommand, projectRoot as root, runCommand } from "../gen/command.ts";
import { bundlePrograms, LEFT_ALONE } from "./bundle.ts";

/** What runs by Node 24. */
const PROGRAMS = "tsconfig.build.json";
/** What programs import, in Node 20 and in browsers, is compiled for them, and has its types. */
const LIBRARY = "sdk/typescript/tsconfig.build.json";

/** What is read at run time and is no TypeScript. */
const FILES = [
  "LICENSE",
  "{CHANGELOG,SECURITY}.md",
  "{Dockerfile,compose.yaml,docker-compose.yml}",
  "console/README.md",
  "deploy/**/*.{yaml,conf,json,service}",
  "docs/**/*.md",
  "docs/console/*-1440/run.png",
  "examples/**/*.{go,html,json,md,mjs,mod,py,sum,ts,yaml}",
  "examples/ui/*.js",
  "gen/console/*",
  "gen/go/**/*.{go,mod,sum}",
  "gen/jsonschema/*.json",
  "gen/python/**/*.{py,pyi,toml}",
  "proto/**/*.{md,proto}",
  "runtime/**/*.txt",
  "sdk/*/README.md",
  "sdk/go/*.{go,mod,sum}",
  "sdk/python-client/{pyproject.toml,toolbus/*}",
  "sdk/python/toolbus_sdk/**/{*.py,py.typed}",
  "services/worker-pool/inspector/*.py",
];

/** Builds the package for npm in a directory of its own: the suite, the command and the library; gives the path of its tarball. */
export async function packPackage(directory: string): Promise<string> {
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  const compiled = `${directory}-programs`;
  await rm(compiled, { recursive: true, force: true });
  await compile(PROGRAMS, compiled);
  const own = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  await writeFile(join(compiled, "package.json"), JSON.stringify(manifest(own, own.dependencies)));
  await bundlePrograms(compiled, directory);
  await compile(LIBRARY, directory);
  const dependencies = await importedOf(own.dependencies, directory);
  await writeFile(join(directory, "cli/suite/bus-users/bus-users.json"), JSON.stringify(busUsers()));
  for await (const file of glob(FILES, { cwd: root }))
    await cp(join(root, file), join(directory, file), { recursive: true });
  const readme = await readFile(join(root, "tools/pack/package-readme.md"), "utf8");
  await writeFile(join(directory, "README.md"), readme.replaceAll("](../../", "]("));
  await writeFile(join(directory, "package.json"), JSON.stringify(manifest(own, dependencies), undefined, 2));
  const target = dirname(directory);
  const name = await runCommand("npm", ["pack", "--silent", "--pack-destination", target], { cwd: directory });
  return join(target, name.trim());
}

/** The compiler minds that it leaves imports by `#` as they are: the package says where they lead. */
const LEFT = "error TS2877:";

async function compile(project: string, directory: string): Promise<void> {
  const { output } = await observeCommand("tsc", ["-p", project, "--outDir", directory], { cwd: root });
  const faults = output.split("\n").filter((line) => line.includes("error TS") && !line.includes(LEFT));
  if (faults.length > 0) throw new Error(`the package does not compile:\n${faults.join("\n")}`);
}

type Versions = Readonly<Record<string, string>>;

const IMPORT = /\b(?:from|import|import\(|require\()\s*["'](@[^"'/]+\/[^"'/]+|[^"'@./#][^"'/]*)/g;

/** Of the packages, those that are imported still: the others are in the bundle, and whoever installs ours needs them no more. */
async function importedOf(versions: Versions, directory: string): Promise<Versions> {
  const names = new Set(LEFT_ALONE);
  for await (const file of glob("**/*.{js,d.ts}", { cwd: directory }))
    for (const [, name = ""] of (await readFile(join(directory, file), "utf8")).matchAll(IMPORT)) names.add(name);
  return Object.fromEntries(Object.entries(versions).filter(([name]) => names.has(name)));
}

interface OwnManifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type: string;
  readonly optionalDependencies: Versions;
}

function manifest(own: OwnManifest, dependencies: Versions): object {
  const { name, version, description, license, type, optionalDependencies } = own;
  const module = (path: string) => ({ types: `${path}.d.ts`, default: `${path}.js` });
  return {
    name,
    version,
    description,
    license,
    type,
    engines: { node: ">=20" },
    bin: { toolbus: "cli/toolbus.js" },
    exports: {
      ".": module("./sdk/typescript/client/toolbus"),
      "./hosted": module("./sdk/typescript/hosted"),
      "./gen/*": module("./gen/es/toolbus/*"),
      "./schemas/*": "./gen/jsonschema/*",
    },
    imports: {
      "#gen/jsonschema/*": "./gen/jsonschema/*",
      "#gen/*.ts": module("./gen/es/*"),
      "#runtime/*.ts": module("./runtime/*"),
    },
    dependencies,
    optionalDependencies,
  };
}

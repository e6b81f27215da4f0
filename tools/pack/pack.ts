import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { observeCommand, projectRoot as root, runCommand } from "../gen/command.ts";

const entry = "./sdk/typescript/client/toolbus";
const dependencies = ["@bufbuild/protobuf", "@connectrpc/connect", "@connectrpc/connect-web"];

/** Builds the library for TypeScript as a package for npm, for Node 20 and browsers; gives the path of its tarball. */
export async function packLibrary(directory: string): Promise<string> {
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  await compile(directory);
  await writeFile(join(directory, "package.json"), JSON.stringify(await manifest(), undefined, 2));
  for (const name of ["LICENSE", "sdk/typescript/README.md"])
    await writeFile(join(directory, name.split("/").at(-1) ?? name), await readFile(join(root, name)));
  const target = dirname(directory);
  const name = await runCommand("npm", ["pack", "--silent", "--pack-destination", target], { cwd: directory });
  return join(target, name.trim());
}

/** The compiler minds that it leaves imports by `#` as they are: the package says where they lead. */
const LEFT = "error TS2877:";

async function compile(directory: string): Promise<void> {
  const args = ["-p", "sdk/typescript/tsconfig.build.json", "--outDir", directory];
  const { output } = await observeCommand("tsc", args, { cwd: root });
  const faults = output.split("\n").filter((line) => line.includes("error TS") && !line.includes(LEFT));
  if (faults.length > 0) throw new Error(`the library does not compile:\n${faults.join("\n")}`);
}

/** What its files import by `#`, and the packages that they need, in the versions of this project. */
async function manifest(): Promise<object> {
  const own = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  return {
    name: "toolbus",
    version: own.version,
    description: "Runs agents of a toolbus suite, and offers them tools of your program.",
    license: own.license,
    type: "module",
    engines: { node: ">=20" },
    sideEffects: false,
    exports: {
      ".": { types: `${entry}.d.ts`, default: `${entry}.js` },
      "./gen/*": { types: "./gen/es/toolbus/*.d.ts", default: "./gen/es/toolbus/*.js" },
    },
    imports: {
      "#gen/*.ts": { types: "./gen/es/*.d.ts", default: "./gen/es/*.js" },
      "#runtime/*.ts": { types: "./runtime/*.d.ts", default: "./runtime/*.js" },
    },
    dependencies: Object.fromEntries(dependencies.map((name) => [name, own.dependencies[name]])),
  };
}

import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { VERSION } from "#runtime/config/version.ts";
import { projectRoot as root, runCommand } from "../../gen/command.ts";
import { imageFrom, publicContract } from "../../gen/contract.ts";
import { strayVersions } from "../one-version.ts";
import { packPackage } from "../pack.ts";
import { proveTarball, proveWheels } from "../proofs.ts";
import { packWheels } from "./wheels.ts";

/** A file of the release. */
export interface Artifact {
  readonly name: string;
  readonly sha256: string;
  readonly bytes: number;
}

export interface ReleaseOptions {
  readonly onProgress: (message: string) => void;
}

/**
 * Builds everything that is published into a directory, twice, and proves it: both builds are the same byte for byte, and each package
 * works where nothing else is installed. Publishes nothing. Throws, with what is wrong, where the tree says two versions, the builds
 * differ, or a package does not work.
 */
export async function buildRelease(directory: string, { onProgress }: ReleaseOptions): Promise<Artifact[]> {
  const strays = await strayVersions(root);
  if (strays.length > 0) throw new Error(`the tree says more than one version:\n${strays.join("\n")}`);
  const work = join(root, ".toolbus", "release");
  await rm(work, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });

  const builds: string[][] = [];
  for (const build of ["first", "second"]) {
    onProgress(`building all packages of ${VERSION}, the ${build} time`);
    builds.push(await buildAll(join(work, build)));
  }
  const [first = [], second = []] = await Promise.all(builds.map((paths) => Promise.all(paths.map(artifactFrom))));
  const different = first.filter(({ sha256 }, index) => sha256 !== second[index]?.sha256).map(({ name }) => name);
  if (different.length > 0) throw new Error(`two builds differ in ${different.join(", ")}`);

  const [paths = []] = builds;
  const ofKind = (ending: string) => paths.filter((path) => path.endsWith(ending));
  onProgress("installing the package for npm in an empty folder, and asking it");
  await proveTarball(join(work, "npm"), ofKind(".tgz"));
  onProgress("installing the wheels in an empty environment, and importing them");
  await proveWheels(join(work, "python"), ofKind(".whl"));

  for (const path of paths) await copyFile(path, join(directory, basename(path)));
  const sums = first.map(({ name, sha256 }) => `${sha256}  ${name}\n`);
  await writeFile(join(directory, "SHA256SUMS"), sums.join(""));
  return first;
}

/** In the order of their names. */
async function buildAll(directory: string): Promise<string[]> {
  await mkdir(directory, { recursive: true });
  const tarball = await packPackage(join(directory, "toolbus"));
  const wheels = await packWheels(directory);
  const contract = join(directory, `toolbus-contract-${VERSION}.binpb`);
  await writeFile(contract, imageFrom(await publicContract(root)));
  const bill = join(directory, `toolbus-${VERSION}.cdx.json`);
  await writeFile(bill, sameAnywhere(await runCommand("npm", ["run", "--silent", "sbom"], { cwd: root })));
  return [tarball, ...wheels, contract, bill].sort((a, b) => basename(a).localeCompare(basename(b)));
}

/** npm writes when and in which folder it listed the packages, and a number by chance, into each list. */
function sameAnywhere(json: string): string {
  const { serialNumber: _, ...bill } = JSON.parse(json);
  delete bill.metadata.timestamp;
  bill.metadata.component.name = "toolbus";
  return `${JSON.stringify(bill, undefined, 2)}\n`;
}

async function artifactFrom(path: string): Promise<Artifact> {
  const content = await readFile(path);
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { name: basename(path), sha256, bytes: content.length };
}

import { access, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FileDescriptorProto, FileDescriptorSet } from "@bufbuild/protobuf/wkt";
import { runCommand } from "../gen/command.ts";
import { imageFrom, ownFiles, publicContract, withImage } from "../gen/contract.ts";
import { breakagesBetween, everyBreakage, withoutReplaced } from "./compare/breakages.ts";
import { tightenedRules } from "./compare/tightened.ts";
import { releasedContract, releasedImage } from "./image.ts";
import { importsOfInternal } from "./internal.ts";
import {
  changelog,
  parseVersion,
  releasedVersion,
  stepBetween,
  type Version,
  withVersion,
  writeNote,
} from "./version.ts";

export interface ReleaseOptions {
  /** What the released contract is called from now on; left out as long as no version counts. */
  readonly version?: string;
  /** Whether breakages are meant. */
  readonly isBreaking?: boolean;
  /** The day of the release, as the changelog writes it. */
  readonly day: string;
}

/** Makes the contract as it stands the released one; throws, and writes nothing, if the policy (proto/README.md) forbids it. */
export async function releaseContract(root: string, options: ReleaseOptions): Promise<void> {
  await runCommand("buf", ["lint"], { cwd: root });
  const next = await publicContract(root);
  refuseAny("The contract publishes what is internal.", await importsOfInternal(root));
  if (await hasRelease(root)) await allowRelease(root, next, options);
  const image = imageFrom(withoutForeignComments(next));
  if (options.version !== undefined) {
    const text = await readFile(join(root, changelog), "utf8");
    await writeFile(join(root, changelog), withVersion(text, options.version, options.day));
    await writeNote(root, options.version, image);
  }
  await writeFile(join(root, releasedImage), image);
}

function hasRelease(root: string): Promise<boolean> {
  return access(join(root, releasedImage)).then(
    () => true,
    () => false, // whatever the contract says, it breaks nobody
  );
}

async function allowRelease(root: string, next: FileDescriptorSet, options: ReleaseOptions): Promise<void> {
  const released = await releasedContract(root);
  const before = await releasedVersion(root);
  const step = stepOf(before, options);
  if (before === undefined || parseVersion(before).major === 0) {
    if (options.isBreaking !== true) refuseAny(breaksUnmeant, await everyBreakage(released, root));
    return;
  }
  if (options.isBreaking !== true) {
    refuseAny(breaksUnmeant, await everyBreakage(released, root));
    if (step === "patch") refuseAny("What is added needs a minor version.", await additionsSince(released, next, root));
    return;
  }
  if (step !== "major") throw new Error(`A release that breaks ${before} needs a new major version`);
  const breakages = await everyBreakage(withoutReplaced(released, next), root);
  refuseAny(
    "A package that breaks its clients gets a new version suffix (v2), and the old one goes as a whole.",
    breakages,
  );
}

const breaksUnmeant =
  "The contract breaks its last release. Mend it, or release the breakage on purpose: npm run contract:release -- --breaking";

/** By how much the version rises; undefined if neither side has one. Once there is a version, each release has one. */
function stepOf(before: string | undefined, { version }: ReleaseOptions): keyof Version | undefined {
  if (version !== undefined) parseVersion(version);
  if (before === undefined) return undefined;
  if (version === undefined)
    throw new Error(`The released contract is ${before}: say the next version, --version x.y.z`);
  const step = stepBetween(parseVersion(before), parseVersion(version));
  if (step === undefined) throw new Error(`${version} is not above ${before}, the released version`);
  return step;
}

/** What the released contract lacks of the next one is what going back to it would break. */
async function additionsSince(released: FileDescriptorSet, next: FileDescriptorSet, root: string): Promise<string[]> {
  const lacking = await withImage(released, (old) => withImage(next, (image) => breakagesBetween(root, old, image)));
  return [...lacking, ...tightenedRules(next, released)];
}

/** Comments of imports are nobody's defaults, and most of the image. */
function withoutForeignComments(contract: FileDescriptorSet): FileDescriptorSet {
  const own = new Set<FileDescriptorProto>(ownFiles(contract));
  for (const file of contract.file) {
    if (own.has(file) && file.sourceCodeInfo) {
      file.sourceCodeInfo.location = file.sourceCodeInfo.location.filter(
        ({ leadingComments, trailingComments }) => leadingComments !== "" || trailingComments !== "",
      );
    } else delete file.sourceCodeInfo;
  }
  return contract;
}

function refuseAny(reason: string, faults: readonly string[]): void {
  if (faults.length > 0) throw new Error([...faults, reason].join("\n"));
}

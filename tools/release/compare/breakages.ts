import { create } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { observeCommand } from "../../gen/command.ts";
import { ownFiles, publicContract, withImage } from "../../gen/contract.ts";
import { releasedContract } from "../image.ts";
import { changedDefaults } from "./defaults.ts";
import { tightenedRules } from "./tightened.ts";

/** What breaks the wire, the JSON or the generated code of a client of the released contract, one sentence each. */
export async function breakagesOf(root: string): Promise<string[]> {
  const released = await releasedContract(root);
  await publicContract(root); // a contract that does not compile is told as such, not as a breakage
  return breakagesSince(released, root);
}

export async function tightenedRulesOf(root: string): Promise<string[]> {
  return tightenedRules(await releasedContract(root), await publicContract(root));
}

export async function changedDefaultsOf(root: string): Promise<string[]> {
  return changedDefaults(await releasedContract(root), await publicContract(root));
}

/** Everything that a client of the released contract would stumble over. */
export async function everyBreakage(released: FileDescriptorSet, root: string): Promise<string[]> {
  const next = await publicContract(root);
  return [
    ...(await breakagesSince(released, root)),
    ...tightenedRules(released, next),
    ...changedDefaults(released, next),
  ];
}

/** By buf, which reads the rules that count from buf.yaml. */
function breakagesSince(released: FileDescriptorSet, root: string): Promise<string[]> {
  return withImage(released, (image) => breakagesBetween(root, "proto", image));
}

/** The same for any two inputs of buf, such as images. */
export async function breakagesBetween(root: string, input: string, against: string): Promise<string[]> {
  const args = ["breaking", input, "--exclude-imports", "--against", against];
  const { exitCode, output } = await observeCommand("buf", args, { cwd: root });
  return exitCode === 0 ? [] : output.trim().split("\n");
}

/**
 * The released contract without the packages whose place a next version has taken: `toolbus.run.v1` is gone as a whole, and
 * `toolbus.run.v2` is there. That is the one way to break clients on purpose; nobody is taken by surprise who reads names.
 */
export function withoutReplaced(released: FileDescriptorSet, next: FileDescriptorSet): FileDescriptorSet {
  const packages = new Set(ownFiles(next).map((file) => file.package));
  const isReplaced = (name: string) => {
    const version = versionOf(name);
    const hasSuccessor = [...packages].some((other) => version < versionOf(other) && stemOf(other) === stemOf(name));
    return !packages.has(name) && hasSuccessor;
  };
  const kept = released.file.filter((file) => !isReplaced(file.package));
  const names = new Set(kept.map(({ name }) => name));
  for (const { name, dependency, package: user } of kept) {
    const gone = dependency.find((path) => !names.has(path));
    if (gone) throw new Error(`${name} uses ${gone}, whose package was replaced: ${user} needs a next version, too`);
  }
  return create(FileDescriptorSetSchema, { file: kept });
}

const suffix = /\.v(\d+)$/;
const versionOf = (name: string) => Number(suffix.exec(name)?.[1] ?? 0);
const stemOf = (name: string) => name.replace(suffix, "");

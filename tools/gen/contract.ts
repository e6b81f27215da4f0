import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFileRegistry, type FileRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { runCommand } from "./command.ts";
import { fetchProtovalidate } from "./protovalidate.ts";

/** What only the suite's own services say to each other. No client gets it, so no release holds it. */
export const internalFolder = "toolbus/internal/";

/** The public part of the contract as it stands, with its imports. */
export function publicContract(root: string): Promise<FileDescriptorSet> {
  return buildContract(root, ["--exclude-path", join("proto", internalFolder)]);
}

/** The contract as it stands, with what is internal. */
export function wholeContract(root: string): Promise<FileDescriptorSet> {
  return buildContract(root, []);
}

async function buildContract(root: string, args: readonly string[]): Promise<FileDescriptorSet> {
  await fetchProtovalidate(root);
  return inTemporaryFolder(async (folder) => {
    const image = join(folder, "contract.binpb");
    await runCommand("buf", ["build", "proto", ...args, "-o", image], { cwd: root });
    return fromBinary(FileDescriptorSetSchema, await readFile(image));
  });
}

/** Buf's own part of an image (what is an import) is among the unknown fields, which are kept. */
export function imageFrom(contract: FileDescriptorSet): Uint8Array {
  return toBinary(FileDescriptorSetSchema, contract);
}

/** Files that are the project's own, without what they import. */
export function ownFiles(contract: FileDescriptorSet): FileDescriptorProto[] {
  return contract.file.filter((file) => file.name.startsWith("toolbus/"));
}

export function registryFrom(contract: FileDescriptorSet): FileRegistry {
  return createFileRegistry(contract);
}

/** Gives a command a file of its own to read. */
export function withImage<T>(contract: FileDescriptorSet, use: (path: string) => Promise<T>): Promise<T> {
  return inTemporaryFolder(async (folder) => {
    const path = join(folder, "contract.binpb");
    await writeFile(path, imageFrom(contract));
    return await use(path);
  });
}

async function inTemporaryFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "toolbus-contract-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

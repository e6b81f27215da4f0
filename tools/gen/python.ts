import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { runCommand } from "./command.ts";
import { versions } from "./versions.ts";

/**
 * Python's gRPC plugin lives inside grpcio-tools' own protoc, so buf only compiles, and that protoc generates from
 * buf's descriptors: messages for all files, with what they import (Python's packages have no `buf.validate` for
 * classic protobuf), and gRPC stubs for the files that have services.
 */
export async function generatePython(root: string, workFolder: string): Promise<void> {
  const descriptors = join(workFolder, "descriptors.binpb");
  const output = join(workFolder, "gen", "python");
  await mkdir(output, { recursive: true });
  const isPublic = ["--exclude-path", join("proto", "toolbus", "internal")];
  await runCommand("buf", ["build", "proto", ...isPublic, "--as-file-descriptor-set", "-o", descriptors], {
    cwd: root,
  });
  const files = fromBinary(FileDescriptorSetSchema, await readFile(descriptors)).file.filter(isNotBundled);
  const withServices = files.filter((file) => file.service.length > 0);
  const protoc = await protocOfPython(descriptors, root);
  await protoc([`--python_out=${output}`, `--mypy_out=quiet:${output}`], files);
  if (withServices.length > 0) {
    await protoc([`--grpc_python_out=${output}`, `--mypy_grpc_out=quiet:${output}`], withServices);
  }
}

/** The well-known types come with Python's protobuf package. */
function isNotBundled(file: FileDescriptorProto): boolean {
  return !file.name.startsWith("google/protobuf/");
}

async function protocOfPython(descriptors: string, root: string) {
  const uv = await findUv();
  const packages = [`--from=grpcio-tools==${versions.grpcioTools}`, `--with=mypy-protobuf==${versions.mypyProtobuf}`];
  const command = [
    "tool",
    "run",
    ...packages,
    "python",
    "-m",
    "grpc_tools.protoc",
    `--descriptor_set_in=${descriptors}`,
  ];
  return async (outputs: readonly string[], files: readonly FileDescriptorProto[]): Promise<void> => {
    await runCommand(uv, [...command, ...outputs, ...files.map((file) => file.name)], { cwd: root });
  };
}

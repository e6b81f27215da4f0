import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { projectRoot } from "./command.ts";
import { breakagesBetween, breakagesOf, releaseContract, releasedImage } from "./release.ts";
import { readTree, stalenessOf, writeTree } from "./tree.ts";
import { versions } from "./versions.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolbus-gen-test-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function write(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true });
  await writeFile(join(folder, path), content);
}

const protoOf = (fields: string) => `syntax = "proto3";

// Greetings.
package toolbus.greeting.v1;

// A greeting.
message Greeting {
${fields}}
`;
const textField = "  // What is said.\n  string text = 1;\n";
const toneField = "  // How it is said.\n  string tone = 2;\n";
const greetingPath = "proto/toolbus/greeting/v1/greeting.proto";

/** The project's buf.yaml over a contract of one message; protovalidate's schema counts as fetched, so Go is not asked. */
async function writeWorkspace(fields: string): Promise<void> {
  await cp(join(projectRoot, "buf.yaml"), join(folder, "buf.yaml"));
  await write(".gen/protovalidate/version", versions.protovalidate);
  await write(".gen/protovalidate/buf/validate/validate.proto", 'syntax = "proto3";\npackage buf.validate;\n');
  await write(greetingPath, protoOf(fields));
}

describe("the released contract", () => {
  test("a field that is deleted breaks it, by name", async () => {
    await writeWorkspace(textField + toneField);
    await releaseContract(folder);
    expect(await breakagesOf(folder)).toEqual([]);
    await write(greetingPath, protoOf(textField));
    expect((await breakagesOf(folder)).join("\n")).toMatch(
      /field "2" with name "tone" on message "Greeting" was deleted/,
    );
  });

  test("a field that is renamed or gets another type breaks it; one that is added does not", async () => {
    await writeWorkspace(textField);
    await releaseContract(folder);
    await write(greetingPath, protoOf(textField + toneField));
    expect(await breakagesOf(folder)).toEqual([]);
    await write(greetingPath, protoOf(textField.replace("string text", "string words")));
    expect((await breakagesOf(folder)).join("\n")).toMatch(/changed name from "text" to "words"/);
    await write(greetingPath, protoOf(textField.replace("string text", "int32 text")));
    expect((await breakagesOf(folder)).join("\n")).toMatch(/changed type from "string" to "int32"/);
  });

  test("a file that is deleted breaks it", async () => {
    await writeWorkspace(textField);
    await releaseContract(folder);
    await rm(join(folder, greetingPath));
    await write("proto/toolbus/farewell/v1/farewell.proto", protoOf(textField).replace("greeting", "farewell"));
    expect((await breakagesOf(folder)).join("\n")).toMatch(/Previously present file .*greeting.proto/);
  });

  test("without an image the comparison fails instead of finding nothing", async () => {
    await writeWorkspace(textField);
    await expect(breakagesOf(folder)).rejects.toThrow(/no contract has been released/);
  });

  test("the image in the tree holds its imports and catches the deletion of a field", async () => {
    const image = fromBinary(FileDescriptorSetSchema, await readFile(join(projectRoot, releasedImage)));
    expect(image.file.map((file) => file.name)).toContain("buf/validate/validate.proto");
    const message = image.file
      .find((file) => file.name === "toolbus/tool/v1/tool.proto")
      ?.messageType.find((candidate) => candidate.name === "Tool");
    expect(message?.field.shift()?.name).toBe("name");
    await write("changed.binpb", toBinary(FileDescriptorSetSchema, image));
    const breakages = await breakagesBetween(projectRoot, join(folder, "changed.binpb"));
    expect(breakages.join("\n")).toMatch(/with name "name" on message "Tool" was deleted/);
  });
});

describe("generated code", () => {
  const treeOf = (files: Record<string, string>) =>
    new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)]));

  test("a file that is stale, missing or left over is found, by name", async () => {
    await write("es/a_pb.ts", "old");
    await write("es/gone_pb.ts", "gone");
    await write("es/same_pb.ts", "same");
    const fresh = treeOf({ "es/a_pb.ts": "fresh", "es/same_pb.ts": "same", "python/b_pb2.py": "b" });
    expect(stalenessOf(await readTree(folder), fresh)).toEqual({
      missing: ["python/b_pb2.py"],
      changed: ["es/a_pb.ts"],
      leftOver: ["es/gone_pb.ts"],
    });
  });

  test("writing a fresh tree leaves nothing stale and keeps what is written by hand", async () => {
    await write("go/go.mod", "module toolbus.dev/gen/go\n");
    await write("go/gone.pb.go", "package gone\n");
    const fresh = treeOf({ "go/toolbus/tool.pb.go": "package tool\n" });
    await writeTree(folder, fresh);
    expect(stalenessOf(await readTree(folder), fresh)).toEqual({ missing: [], changed: [], leftOver: [] });
    expect(await readFile(join(folder, "go/go.mod"), "utf8")).toContain("module toolbus.dev/gen/go");
  });

  test("what the generated code needs is pinned to what generates it", async () => {
    const read = (path: string) => readFile(join(projectRoot, path), "utf8");
    const [goModule, plugins, python] = await Promise.all(
      ["gen/go/go.mod", "buf.gen.yaml", "gen/python/pyproject.toml"].map(read),
    );
    const pinOf = (text: string | undefined, pattern: RegExp) => pattern.exec(text ?? "")?.[1] ?? `no ${pattern}`;
    expect(pinOf(plugins, /cmd\/protoc-gen-go@(v\S+?)\]/)).toBe(pinOf(goModule, /golang\.org\/protobuf (v\S+)/));
    expect(pinOf(plugins, /protoc-gen-connect-go@(v\S+?)\]/)).toBe(pinOf(goModule, /connectrpc\.com\/connect (v\S+)/));
    expect(pinOf(python, /grpcio>=([\d.]+)/)).toBe(versions.grpcioTools);
  });
});

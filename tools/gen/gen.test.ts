import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { projectRoot } from "./command.ts";
import { publicContract, registryFrom } from "./contract.ts";
import { generateFresh } from "./generate.ts";
import { messageSchema } from "./jsonschema/message-schema.ts";
import { messageOf, openWorkspace, protoFile } from "./testing/workspace.ts";
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
      ["gen/go/go.mod", "tools/gen/go.gen.yaml", "gen/python/pyproject.toml"].map(read),
    );
    const pinOf = (text: string | undefined, pattern: RegExp) => pattern.exec(text ?? "")?.[1] ?? `no ${pattern}`;
    expect(pinOf(plugins, /cmd\/protoc-gen-go@(v\S+?)\]/)).toBe(pinOf(goModule, /golang\.org\/protobuf (v\S+)/));
    expect(pinOf(plugins, /protoc-gen-connect-go@(v\S+?)\]/)).toBe(pinOf(goModule, /connectrpc\.com\/connect (v\S+)/));
    expect(pinOf(python, /grpcio>=([\d.]+)/)).toBe(versions.grpcioTools);
  });

  test("what is internal is generated for the suite's own services, and in no published stub", {
    timeout: 60_000,
  }, async () => {
    await using workspace = await openWorkspace();
    const { root } = workspace;
    const field = "  // What is said.\n  string text = 1;\n";
    const greeting = "toolbus/greeting/v1/greeting";
    const delivery = "toolbus/internal/greeting/v1/delivery";
    await workspace.write(`proto/${greeting}.proto`, protoFile("toolbus.greeting.v1", messageOf("Greeting", field)));
    const publicOnly = [...(await generateFresh(root)).keys()];
    expect(publicOnly).toEqual(
      expect.arrayContaining([`es/${greeting}_pb.ts`, `go/${greeting}.pb.go`, `python/${greeting}_pb2.py`]),
    );
    const internal = messageOf("Delivery", field.replace("string", "toolbus.greeting.v1.Greeting"));
    const text = protoFile("toolbus.internal.greeting.v1", internal, [`${greeting}.proto`]);
    await workspace.write(`proto/${delivery}.proto`, text);
    const withInternal = [...(await generateFresh(root)).keys()];
    expect(withInternal.filter((path) => !publicOnly.includes(path))).toEqual([`es/${delivery}_pb.ts`]);
  });

  test("a spelling of files that names a field which is gone is refused", async () => {
    await using workspace = await openWorkspace();
    const greeting = messageOf("Greeting", "  // What is said.\n  string text = 1;\n");
    await workspace.write("proto/toolbus/greeting/v1/greeting.proto", protoFile("toolbus.greeting.v1", greeting));
    const types = registryFrom(await publicContract(workspace.root));
    const message = types.getMessage("toolbus.greeting.v1.Greeting");
    if (message === undefined) throw new Error("there is no greeting");
    const schemaOf = (field: string) => {
      const fields = { words: { field, schema: (own: object) => ({ ...own, maxLength: 9 }) } };
      return messageSchema(
        message,
        { properties: { text: { type: "string" } } },
        { [message.typeName]: { fields } },
        types,
      );
    };
    expect(schemaOf("text")).toEqual({ properties: { words: { type: "string", maxLength: 9 } } });
    expect(() => schemaOf("txet")).toThrow(/names txet, which toolbus\.greeting\.v1\.Greeting lacks/);
  });
});

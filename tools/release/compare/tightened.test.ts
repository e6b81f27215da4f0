import type { FileDescriptorSet } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { publicContract } from "../../gen/contract.ts";
import { openWorkspace, protoFile, type Workspace } from "../../gen/testing/workspace.ts";
import { tightenedRules } from "./tightened.ts";

/** What it is about, the field's type, its rules in the release, its rules in the next contract, and what is told of them. */
type Case = readonly [what: string, type: string, before: string, after: string, told?: string];

const tighter: readonly Case[] = [
  ["max_len that falls", "string", "string.max_len = 64", "string.max_len = 32", "string.max_len was 64, is now 32"],
  ["max_len that is added", "string", "", "string.max_len = 64", "string.max_len was not there, is now 64"],
  ["max_bytes that falls", "bytes", "bytes.max_len = 9", "bytes.max_len = 8", "bytes.max_len was 9, is now 8"],
  ["min_len that rises", "string", "string.min_len = 1", "string.min_len = 2", "string.min_len was 1, is now 2"],
  ["len that changes", "string", "string.len = 3", "string.len = 4", "string.len was 3, is now 4"],
  [
    "a pattern that changes",
    "string",
    'string.pattern = "^a+$"',
    'string.pattern = "^a*$"',
    'string.pattern was "^a+$"',
  ],
  ["a pattern that is added", "string", "", 'string.pattern = "^a+$"', 'string.pattern was not there, is now "^a+$"'],
  [
    "a prefix that changes",
    "string",
    'string.prefix = "a"',
    'string.prefix = "b"',
    'string.prefix was "a", is now "b"',
  ],
  ["a format that is added", "string", "", "string.email = true", "string.email was not there, is now true"],
  ["required that is added", "string", "", "required = true", "required was not there, is now true"],
  [
    "required that is turned on",
    "string",
    "required = false",
    "required = true",
    "required was not there, is now true",
  ],
  [
    "an ignore that goes",
    "string",
    "ignore = IGNORE_ALWAYS",
    "ignore = IGNORE_IF_ZERO_VALUE",
    "ignore was 3, is now 1",
  ],
  [
    "cel that is added",
    "string",
    "",
    'cel = {id: "a", message: "no", expression: "this != \'\'"}',
    "cel was not there",
  ],
  [
    "cel that changes",
    "string",
    "cel_expression = \"this != 'a'\"",
    "cel_expression = \"this != 'b'\"",
    "cel_expression was",
  ],
  [
    "in that is narrowed",
    "string",
    'string = {in: ["a", "b"]}',
    'string = {in: ["a"]}',
    "string.in was [a, b], is now [a]",
  ],
  ["in that is added", "int32", "", "int32 = {in: [1, 2]}", "int32.in was not there, is now [1, 2]"],
  ["not_in that is widened", "int32", "int32 = {not_in: [1]}", "int32 = {not_in: [1, 2]}", "int32.not_in was [1]"],
  ["const that changes", "bool", "", "bool.const = false", "bool.const was not there, is now false"],
  ["lte that falls", "uint32", "uint32.lte = 10", "uint32.lte = 9", "uint32.lte was 10, is now 9"],
  ["lte that becomes lt", "uint32", "uint32.lte = 10", "uint32.lt = 10", "uint32.lt was not there, is now 10"],
  ["gte that rises", "double", "double.gte = 0", "double.gte = 0.5", "double.gte was 0, is now 0.5"],
  ["a hole that is widened", "int32", "int32 = {lt: 1, gt: 5}", "int32 = {lt: 1}", "int32.gt was 5, is now not there"],
  ["finite that is added", "double", "", "double.finite = true", "double.finite was not there, is now true"],
  [
    "defined_only that is added",
    "Kind",
    "",
    "enum.defined_only = true",
    "enum.defined_only was not there, is now true",
  ],
  [
    "max_items that falls",
    "repeated string",
    "repeated.max_items = 9",
    "repeated.max_items = 8",
    "repeated.max_items was 9",
  ],
  ["unique that is added", "repeated string", "", "repeated.unique = true", "repeated.unique was not there"],
  [
    "a rule of an element",
    "repeated string",
    "repeated.items.string.max_len = 9",
    "repeated.items.string.max_len = 8",
    "repeated.items.string.max_len was 9, is now 8",
  ],
  ["min_pairs that is added", "map<string, string>", "", "map.min_pairs = 1", "map.min_pairs was not there, is now 1"],
  [
    "a rule of a key",
    "map<string, string>",
    "",
    "map.keys.string.max_len = 9",
    "map.keys.string.max_len was not there, is now 9",
  ],
  [
    "a duration's bound that falls",
    "google.protobuf.Duration",
    "duration.lte = {seconds: 2}",
    "duration.lte = {seconds: 1, nanos: 5}",
    "duration.lte was 2000000000, is now 1000000005",
  ],
];

const looser: readonly Case[] = [
  ["the same rules", "string", 'string = {max_len: 4, pattern: "^a+$"}', 'string = {max_len: 4, pattern: "^a+$"}'],
  ["max_len that rises", "string", "string.max_len = 64", "string.max_len = 65"],
  ["max_len that goes", "string", "string.max_len = 64", ""],
  ["min_len that falls", "string", "string.min_len = 2", "string.min_len = 1"],
  ["a pattern that goes", "string", 'string.pattern = "^a+$"', ""],
  ["required that goes", "string", "required = true", ""],
  ["required that is turned off", "string", "required = true", "required = false"],
  [
    "an ignore that is added",
    "string",
    "string.min_len = 1",
    "string.min_len = 1, (buf.validate.field).ignore = IGNORE_IF_ZERO_VALUE",
  ],
  [
    "cel whose words change",
    "string",
    'cel = {id: "a", message: "no", expression: "true"}',
    'cel = {id: "b", message: "not so", expression: "true"}',
  ],
  ["in that is widened", "string", 'string = {in: ["a"]}', 'string = {in: ["b", "a"]}'],
  ["not_in that is narrowed", "int32", "int32 = {not_in: [1, 2]}", "int32 = {not_in: [2]}"],
  ["lt that becomes lte", "uint32", "uint32.lt = 10", "uint32.lte = 10"],
  ["gt that becomes a lower gte", "int32", "int32.gt = 5", "int32.gte = 4"],
  ["defined_only that goes", "Kind", "enum.defined_only = true", ""],
  ["an example that is added", "string", "", 'string.example = "a"'],
  [
    "a duration's bound that rises",
    "google.protobuf.Duration",
    "duration.lte = {seconds: 2}",
    "duration.lte = {seconds: 3}",
  ],
];

const cases = [...tighter, ...looser];
const kind = "// A kind.\nenum Kind {\n  // Not set.\n  KIND_UNSPECIFIED = 0;\n}\n";

/** One message a case, so that two builds serve them all. */
function contractOf(rulesOf: (one: Case) => string): string {
  const messages = cases.map((one, index) => {
    const rules = rulesOf(one);
    const options = rules === "" ? "" : ` [(buf.validate.field).${rules}]`;
    return `// A case.\nmessage Case${index} {\n  // What is said.\n  ${one[1]} text = 1${options};\n}\n`;
  });
  return protoFile("toolbus.greeting.v1", kind + messages.join(""), [
    "buf/validate/validate.proto",
    "google/protobuf/duration.proto",
  ]);
}

let workspace: Workspace;

async function build(text: string): Promise<FileDescriptorSet> {
  await workspace.write("proto/toolbus/greeting/v1/greeting.proto", text);
  return publicContract(workspace.root);
}

beforeAll(async () => {
  workspace = await openWorkspace();
});
afterAll(() => workspace[Symbol.asyncDispose]());

describe("rules of a field", () => {
  let found: string[];
  const toldOf = (one: Case) =>
    found.filter((line) => line.startsWith(`toolbus.greeting.v1.Case${cases.indexOf(one)}.`));

  beforeAll(async () => {
    const released = await build(contractOf(([, , before]) => before));
    found = tightenedRules(released, await build(contractOf(([, , , after]) => after)));
  });

  test.each(tighter.map((one) => [one[0], one[1], one] as const))("%s (%s) is tighter", (_what, _type, one) => {
    const told = toldOf(one);
    expect(told.length).toBeGreaterThan(0);
    expect(told.join("\n")).toContain(`text: ${one[4]}`);
  });

  test.each(looser.map((one) => [one[0], one[1], one] as const))("%s (%s) is not", (_what, _type, one) => {
    expect(toldOf(one)).toEqual([]);
  });
});

describe("rules of a message", () => {
  const greeting = (
    options: string,
    fields = "  // What is said.\n  string text = 1;\n  // How.\n  string tone = 2;\n",
  ) =>
    protoFile("toolbus.greeting.v1", `// A greeting.\nmessage Greeting {\n${options}${fields}}\n`, [
      "buf/validate/validate.proto",
    ]);
  const tightenedFrom = async (before: string, after: string) =>
    tightenedRules(await build(before), await build(after));

  test("an expression that is added is tighter, and one that goes is not", async () => {
    const cel = greeting('  option (buf.validate.message).cel_expression = "this.text != this.tone";\n');
    expect(await tightenedFrom(greeting(""), cel)).toEqual([
      "toolbus.greeting.v1.Greeting: cel was not there, is now [this.text != this.tone]",
    ]);
    expect(await tightenedFrom(cel, greeting(""))).toEqual([]);
  });

  test("fields that exclude each other from now on are tighter, and one of them that must be set is, too", async () => {
    const either = (required: boolean) =>
      greeting(`  option (buf.validate.message).oneof = {fields: ["text", "tone"], required: ${required}};\n`);
    expect(await tightenedFrom(greeting(""), either(false))).toEqual([
      expect.stringContaining("at most one of text, tone"),
    ]);
    expect(await tightenedFrom(either(false), either(true))).toEqual([
      expect.stringContaining("at least one of text, tone"),
    ]);
    expect(await tightenedFrom(either(true), either(false))).toEqual([]);
  });

  test("a oneof that is required from now on is tighter", async () => {
    const oneof = (option: string) =>
      greeting("", `  // Words.\n  oneof words {\n${option}    // What.\n    string text = 1;\n  }\n`);
    const required = oneof("    option (buf.validate.oneof).required = true;\n");
    expect(await tightenedFrom(oneof(""), required)).toEqual([
      "toolbus.greeting.v1.Greeting.words: required was not there, is now true",
    ]);
    expect(await tightenedFrom(required, oneof(""))).toEqual([]);
  });

  test("a field that is added and refuses to be left out is tighter; one that may be, with any rules, is not", async () => {
    const added = (rule: string) => {
      const fields = `  // What is said.\n  string text = 1;\n  // To whom.\n  string to = 3 [(buf.validate.field).${rule}];\n`;
      return greeting("", fields);
    };
    const before = greeting("", "  // What is said.\n  string text = 1 [(buf.validate.field).string.min_len = 1];\n");
    const told = await tightenedFrom(
      greeting("", "  // What is said.\n  string text = 1;\n"),
      added("string.min_len = 1"),
    );
    expect(told).toEqual([expect.stringMatching(/^toolbus\.greeting\.v1\.Greeting\.to: is new, and must be set: /)]);
    expect(await tightenedFrom(before, added("string.max_len = 9"))).toEqual([]);
  });
});

import { create } from "@bufbuild/protobuf";
import { type Duration, durationFromMs } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type CallerDeclaration, CallerDeclarationSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { contractValidator } from "#runtime/schema/contract/contract-validator.ts";
import { createValidator } from "#runtime/schema/json-schema/validator.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { findTool, namesFromDeclaration, requireSchemas, toolsFromDeclaration } from "./declaration.ts";

const declare = (callerId: string, ...tools: { name: string; inputSchemaJson?: string; timeout?: Duration }[]) =>
  create(CallerDeclarationSchema, { callerId, tools });

const validator = createValidator();
const check = (declaration: CallerDeclaration) =>
  requireSchemas(declaration, (_, text) => validator.faultOfSchema(text, "alice"));

describe("a declaration", () => {
  test("CTR-2 gives each tool the name <caller_id>_<name>", () => {
    const declaration = declare("myapp", { name: "a" }, { name: "b-2" });
    expect(namesFromDeclaration(declaration)).toEqual(["myapp_a", "myapp_b-2"]);
    expect(contractValidator.validate(CallerDeclarationSchema, declaration).kind).toBe("valid");
    const longest = declare("x", { name: "y".repeat(62) });
    expect(contractValidator.validate(CallerDeclarationSchema, longest).kind).toBe("valid");
  });

  test.each([
    ["myapp", "my tool"],
    ["my.app", "tool"],
    ["myapp", "x".repeat(60)],
    ["", "ä"],
  ])("CTR-2 the caller %j with the tool %j is refused with both names", (callerId, name) => {
    const both = `"${name}", which the agent would see as "${callerId}_${name}"`;
    const refuse = () => namesFromDeclaration(declare(callerId, { name }));
    expect(refuse).toThrow(both);
    const { violations = [] } = contractValidator.validate(CallerDeclarationSchema, declare(callerId, { name }));
    expect(violations.map(({ message }) => message).join()).toContain(both);
  });

  test("CTR-2 two tools of one name are refused, as is one named like a built-in", () => {
    expect(() => namesFromDeclaration(declare("app", { name: "a" }, { name: "a" }))).toThrow(
      /"a".*"app_a".*collides with "a"/,
    );
    expect(() => namesFromDeclaration(declare("enter", { name: "space" }))).toThrow(/"space".*"enter_space".*built-in/);
  });

  test("CTR-2 what is accepted can be called, and is found again by the name that the agent sees", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), fc.string({ minLength: 1, maxLength: 40 }), (callerId, name) => {
        const declaration = declare(callerId, { name });
        let names: string[];
        try {
          names = namesFromDeclaration(declaration);
        } catch {
          return; // refused
        }
        expect(names[0]).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
        expect(findTool(declaration, names[0] ?? "")?.name).toBe(name);
      }),
    );
  });

  test.each([
    ["no JSON", "{"],
    ["no object", "[]"],
    ["no schema", '{"type":"object","properties":{"a":{"type":"strange"}}}'],
    ["a schema of something else", '{"type":"string"}'],
  ])("CTR-2 a tool whose input schema is %s is refused with its name", async (_, inputSchemaJson) => {
    await expect(check(declare("app", { name: "a", inputSchemaJson }))).rejects.toThrow(/"app_a", has an input schema/);
  });

  test("SEC-5 many schemas are compiled in slices, and all else comes in between", async () => {
    let turns = 0;
    const others = setInterval(() => (turns += 1));
    const schemaOf = (name: string) => JSON.stringify({ properties: { [name]: { type: "string" } } });
    const names = Array.from({ length: 300 }, (_, index) => `slice-${index}`);
    await check(declare("app", ...names.map((name) => ({ name, inputSchemaJson: schemaOf(name) }))));
    clearInterval(others);
    expect(turns).toBeGreaterThan(2);
  });

  test("CTR-2 schemas of the drafts in use are accepted; a missing one means any object", async () => {
    const draft07 = '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{}}';
    const draft2020 = '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{}}';
    const declaration = declare(
      "app",
      { name: "a", inputSchemaJson: draft07 },
      { name: "b", inputSchemaJson: draft2020 },
      { name: "c" },
    );
    await check(declaration);
    expect(toolsFromDeclaration(declaration, 60_000).map((tool) => tool.inputSchemaJson)).toEqual([
      draft07,
      draft2020,
      '{"type":"object"}',
    ]);
  });

  test("KIND-4 a tool has its own time, or the relay's", () => {
    const tools = toolsFromDeclaration(
      declare("app", { name: "a", timeout: durationFromMs(5) }, { name: "b" }),
      60_000,
    );
    expect(tools.map(({ timeout, executionType }) => [msFromDuration(timeout), executionType])).toEqual([
      [5, ExecutionType.CALLER],
      [60_000, ExecutionType.CALLER],
    ]);
  });
});

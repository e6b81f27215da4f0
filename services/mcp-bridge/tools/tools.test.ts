import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Effect, LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { parseTool } from "./listed/parse-tool.ts";
import { logFromNotification } from "./log.ts";
import { resultFromAnswer } from "./result.ts";
import { askMethod } from "./server-method.ts";

const withArguments = (properties: object) => ({ name: "t", inputSchema: { type: "object", properties } });
const text = (value: string) => ({ type: "text" as const, text: value });

describe("a listed tool", () => {
  test("ORCH-7 of any form is taken or refused with a reason, never thrown", () => {
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.record({ name: fc.anything(), inputSchema: fc.anything() })), (listed) => {
        const parsed = parseTool(listed);
        if (parsed.kind === "refused") expect(parsed.reason).not.toBe("");
        else expect(JSON.parse(parsed.tool.inputSchemaJson)).toBeTypeOf("object");
      }),
    );
  });

  test.for([
    [{ readOnlyHint: true, idempotentHint: true }, Effect.PURE],
    [{ idempotentHint: true }, Effect.IDEMPOTENT],
    [{ readOnlyHint: false }, Effect.AT_MOST_ONCE],
    [undefined, Effect.AT_MOST_ONCE],
  ] as const)("with the hints %j has the effect %i", ([annotations, effect]) => {
    const parsed = parseTool({ name: "t", inputSchema: { type: "object" }, annotations });
    expect(parsed).toMatchObject({ kind: "tool", tool: { effect } });
  });

  test("ORCH-7 keeps name, title, description and schemas as they were listed", () => {
    const inputSchema = { type: "object", properties: { a: { type: "integer", description: "how many" } } };
    const outputSchema = { type: "object", required: ["sum"], properties: { sum: { type: "number" } } };
    const listed = { name: "add.up", title: "Add", description: "Adds\n\nnumbers.", inputSchema, outputSchema };
    const parsed = parseTool(listed);
    if (parsed.kind === "refused") throw new Error(parsed.reason);
    const { name, description, inputSchemaJson, outputSchemaJson, annotations } = parsed.tool;
    expect({ name, description }).toEqual({ name: "add.up", description: "Adds\n\nnumbers." });
    expect([inputSchemaJson, outputSchemaJson].map((text) => JSON.parse(text))).toEqual([inputSchema, outputSchema]);
    expect(annotations?.title).toBe("Add");
  });

  test("ORCH-7 keeps icons that a page may load, and no others", () => {
    const icons = [
      { src: "https://e.org/a.png", mimeType: "image/png", sizes: ["48x48"], theme: "dark" },
      { src: "javascript:alert(1)" },
      { src: "file:///etc/passwd" },
      "wrong",
    ];
    const parsed = parseTool({ name: "t", inputSchema: { type: "object" }, icons });
    expect(parsed.kind === "tool" && parsed.tool.icons).toMatchObject([icons[0]]);
  });

  test.for([
    ["", "is no name of a header"],
    ["My Region", "is no name of a header"],
    ["Région", "is no name of a header"],
    [7, "is no name of a header"],
  ] as const)("ORCH-6 with %j for a header is not offered over HTTP, and is elsewhere", ([name, reason]) => {
    const listed = withArguments({ region: { type: "string", "x-mcp-header": name } });
    expect(parseTool(listed, { hasHeaders: true })).toMatchObject({ reason: expect.stringContaining(reason) });
    expect(parseTool(listed).kind).toBe("tool");
  });

  test.for([
    [{ a: { type: "object", "x-mcp-header": "A" } }, "no string, integer or boolean"],
    [{ a: { type: "number", "x-mcp-header": "A" } }, "no string, integer or boolean"],
    [{ a: { type: "string", "x-mcp-header": "A" }, b: { type: "string", "x-mcp-header": "a" } }, "at two arguments"],
    [{ a: { type: "array", items: { type: "string", "x-mcp-header": "A" } } }, "at no argument"],
    [{ a: { anyOf: [{ type: "string", "x-mcp-header": "A" }] } }, "at no argument"],
  ] as const)("ORCH-6 with the arguments %j, which cannot be headers, is not offered over HTTP", ([args, reason]) => {
    expect(parseTool(withArguments(args), { hasHeaders: true })).toMatchObject({
      reason: expect.stringContaining(reason),
    });
  });

  test("ORCH-6 whose arguments can be headers is offered, at any depth and whatever its data is called", () => {
    const where = { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } };
    const named = {
      type: "object",
      properties: { "x-mcp-header": { type: "object" } },
      default: { "x-mcp-header": 1 },
    };
    const count = { type: "integer", "x-mcp-header": "Count" };
    expect(parseTool(withArguments({ where, named, count }), { hasHeaders: true }).kind).toBe("tool");
  });

  test("does without an output schema that is none", () => {
    const parsed = parseTool({ name: "t", inputSchema: { type: "object" }, outputSchema: "wrong" });
    expect(parsed).toMatchObject({ kind: "tool", tool: { outputSchemaJson: "" } });
  });
});

describe("an answer", () => {
  test("is always one JSON text, whatever its content", () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.boolean(), (texts, isError) => {
        const result = resultFromAnswer({ content: texts.map(text), isError });
        expect(() => JSON.parse(result.outputJson)).not.toThrow();
        expect(result.isError).toBe(isError);
      }),
    );
  });

  test("keeps the JSON of a single text as it stands", () => {
    expect(resultFromAnswer({ content: [text('{"big": 12345678901234567890}')] }).outputJson).toBe(
      '{"big": 12345678901234567890}',
    );
  });

  test("joins several texts by lines, even if each is JSON", () => {
    expect(resultFromAnswer({ content: [text("1"), text("2")] }).outputJson).toBe('"1\\n2"');
  });

  test("that is an error without words says so", () => {
    const result = resultFromAnswer({ content: [], isError: true });
    expect(JSON.parse(result.outputJson)).toEqual({ error: "the tool failed without saying why" });
  });
});

test.for([
  ["debug", LogLevel.DEBUG],
  ["notice", LogLevel.INFO],
  ["warning", LogLevel.WARN],
  ["emergency", LogLevel.ERROR],
] as const)("a log of level %s is told as %s", ([level, told]) => {
  expect(logFromNotification({ level, data: "words" })).toMatchObject({
    level: told,
    message: "words",
    fieldsJson: "",
  });
});

test("SEC-5 of a page with very many resources the first are told", async () => {
  const resources = Array.from({ length: 500_000 }, (_, index) => ({ uri: `odd://${index}` }));
  const { structuredContent } = await askMethod(async () => ({ resources }), "resources/list", {});
  expect(structuredContent).toEqual({ items: resources.slice(0, 10_000) });
});

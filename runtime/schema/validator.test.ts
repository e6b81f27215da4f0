import { describe, expect, test } from "vitest";
import { createValidator } from "./validator.ts";

const validator = createValidator();
const schema = JSON.stringify({
  type: "object",
  properties: {
    list: { type: "array", items: { type: "integer" } },
    day: { type: "string", format: "date" },
    kind: { enum: ["a", "b"] },
  },
  required: ["list"],
  additionalProperties: false,
});
const faultOf = (argumentsJson: string, of = schema) => {
  const validation = validator.parseArguments(of, argumentsJson);
  return validation.kind === "invalid" ? validation.message : undefined;
};

describe("arguments", () => {
  test("that fit are read once and given back", () => {
    expect(validator.parseArguments(schema, '{"list":[1]}')).toEqual({ kind: "valid", value: { list: [1] } });
    expect(validator.parseArguments("", "")).toEqual({ kind: "valid", value: {} });
  });

  test("that do not fit are told with all faults and their paths", () => {
    expect(faultOf('{"list":[1,"x"],"day":"soon","kind":"c","more":1}')).toBe(
      'arguments.more: is not a known field; arguments.list[1]: must be integer; arguments.day: must match format "date"; ' +
        'arguments.kind: must be equal to one of the allowed values ("a", "b")',
    );
  });

  test("that are no JSON or no object are told so", () => {
    expect(faultOf("{")).toMatch(/the arguments must be valid JSON/);
    expect(faultOf("[]")).toBe("the arguments must be a JSON object");
  });

  test("a flood of faults is cut", () => {
    expect(faultOf(JSON.stringify({ list: Array(50).fill("x") }))).toMatch(/; and 45 more$/);
  });
});

describe("schemas", () => {
  test("of draft-07 and 2020-12 mean what their drafts say", () => {
    const tuple = { type: "object", properties: { pair: { items: [{ type: "string" }], additionalItems: false } } };
    const old = JSON.stringify({ $schema: "http://json-schema.org/draft-07/schema#", ...tuple });
    expect(faultOf('{"pair":["a","b"]}', old)).toMatch(/must NOT have more than 1 items/);
    const recent = JSON.stringify({
      type: "object",
      properties: { pair: { prefixItems: [{ type: "string" }], items: false } },
    });
    expect(faultOf('{"pair":["a","b"]}', recent)).toMatch(/must NOT have more than 1 items/);
  });

  test("with the same $id live side by side, and are forgotten one by one", () => {
    const small = createValidator(2);
    for (let n = 0; n < 5; n++) {
      const text = JSON.stringify({ $id: "https://example.org/one", type: "object", properties: { n: { const: n } } });
      expect(small.parseArguments(text, `{"n":${n}}`).kind).toBe("valid");
      expect(small.parseArguments(text, `{"n":${n + 1}}`).kind).toBe("invalid");
    }
  });

  test("that are none are told, and let nothing pass", () => {
    const bad = JSON.stringify({ type: "objekt" });
    expect(validator.faultOfSchema(bad)).toMatch(/type/);
    expect(faultOf("{}", bad)).toMatch(/cannot be checked/);
  });
});

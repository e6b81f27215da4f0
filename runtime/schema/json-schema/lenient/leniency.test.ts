import { expect, test } from "vitest";
import { createValidator } from "../validator.ts";

const strict = createValidator();
const lenient = createValidator({ isLenient: true });
const schemaOf = (properties: object, more: object = {}) => JSON.stringify({ type: "object", properties, ...more });
const faultOf = async (schema: string, value: object) =>
  lenient.faultOfArguments(schema, JSON.stringify(value), "alice");

test.each([
  "^[\\w-.]+$",
  "(?i)^abc$",
  "\\A[a-z]+\\Z",
  "^[a-z0-9_\\-]+\\z",
  "^(?P<year>\\d{4})$",
  "[[:alpha:]]+",
  "^\\p{IsGreek}$",
  "(?x) a b",
  "a++b",
  "(?>a)b",
  "[",
])("a pattern of another language, %s, is left to the server, and the rest is checked", async (pattern) => {
  const schema = schemaOf({ a: { type: "string", pattern, maxLength: 9 }, n: { type: "integer" } });
  expect(await strict.faultOfArguments(schema, '{"a":"x"}', "alice"), "nobody could call it").toBeDefined();
  expect(await faultOf(schema, { a: "x", n: 1 })).toBeUndefined();
  expect(await faultOf(schema, { a: "x", n: "1" })).toBeDefined();
  expect(await faultOf(schema, { a: "x".repeat(10) })).toBeDefined();
  expect(await lenient.leftUnchecked(schema, "alice")).toBe(`properties.a.pattern ${JSON.stringify(pattern)}`);
});

test.each([
  ["a type that there is none", { a: { type: "any" } }, 'properties.a.type "any"'],
  ["a reference to elsewhere", { a: { $ref: "https://example.org/a.json" } }, /properties\.a\.\$ref/],
  ["a reference to nowhere", { a: { $ref: "#/definitions/a" } }, /properties\.a\.\$ref/],
  ["a bound of draft 04", { a: { minimum: 1, exclusiveMinimum: true } }, "properties.a.exclusiveMinimum true"],
  ["a list of draft 04", { a: { items: [{ type: "string" }] } }, /properties\.a\.items/],
  ["a required of draft 03", { a: { required: true } }, "properties.a.required true"],
  ["an id of draft 04", { a: { id: "#a" } }, 'properties.a.id "#a"'],
  ["a property that is no schema", { a: 7 }, "properties.a 7"],
  ["what stands below a name with a percent sign", { "a%": { required: true } }, "properties.a%.required true"],
  ["what stands below a name like an encoded one", { "%61": { required: true } }, "properties.%61.required true"],
])("%s is left to the server, and the rest is checked", async (_, properties, left) => {
  const schema = schemaOf({ ...properties, n: { type: "integer" } }, { required: ["n"] });
  expect(await strict.faultOfArguments(schema, '{"n":1}', "alice")).toBeDefined();
  expect(await faultOf(schema, { a: [2], n: 1 })).toBeUndefined();
  expect(await faultOf(schema, { a: [2], n: "1" })).toBeDefined();
  expect(await faultOf(schema, { a: [2] })).toBeDefined();
  expect(await lenient.leftUnchecked(schema, "alice")).toMatch(left);
});

test("a word of the compiler's own is passed over, and all is checked", async () => {
  const schema = schemaOf({ a: { $async: true, type: "string" }, b: { oneOf: [{ type: "string" }, { const: "x" }] } });
  expect(await faultOf(schema, { a: 1 })).toBeDefined();
  expect(await faultOf(schema, { b: "x" })).toBeDefined();
  expect(await lenient.leftUnchecked(schema, "alice")).toBeUndefined();
});

const odd = { pattern: "(?i)^a" };
test.each([
  ["not", { not: { required: ["a"], properties: { a: odd } } }],
  ["one of several", { oneOf: [{ properties: { a: odd } }, { properties: { a: { type: "string" } } }] }],
  ["if", JSON.parse('{"if":{"properties":{"a":{"pattern":"(?i)^a"}}},"then":{"required":["b"]}}')],
  ["names by pattern", { patternProperties: { "(?i)^a": {} }, additionalProperties: false }],
  ["what is left over", { allOf: [{ $ref: "#/nowhere" }], unevaluatedProperties: false }],
])("LENIENT-2 a part that is left makes nothing stricter: %s", async (_, more) => {
  expect(await faultOf(JSON.stringify({ type: "object", ...more }), { a: "x" })).toBeUndefined();
});

test("a good schema is checked as a whole, and a whole that cannot be read is left as a whole", async () => {
  const good = schemaOf({ a: { oneOf: [{ type: "string" }, { const: "x" }] } });
  expect(await faultOf(good, { a: "x" })).toBeDefined();
  expect(await lenient.leftUnchecked(good, "alice")).toBeUndefined();
  const twice = schemaOf({ a: { $id: "https://example.org/a" }, b: { $id: "https://example.org/a", type: "string" } });
  expect(await faultOf(twice, { a: 1 })).toBeUndefined();
});

import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ModelSettingsSchema, ReasoningEffort } from "#gen/toolbus/run/v1/model_settings_pb.ts";
import { callOptionsFromModelOptions, callOptionsFromSettings, modelToolFromTool } from "./call-options.ts";

test("LOOP-18 a run's settings stand above its agent's, and those that it has not are not told", () => {
  const settings = create(ModelSettingsSchema, {
    temperature: 0,
    reasoningEffort: ReasoningEffort.MAX,
    jsonOutput: { schemaJson: '{"type":"object"}', name: "answer" },
  });
  expect(callOptionsFromSettings(settings, {}, 0n)).toEqual({
    temperature: 0,
    reasoning: "max",
    responseFormat: { type: "json", schema: { type: "object" }, name: "answer" },
  });
  expect(callOptionsFromSettings(undefined, { maxOutputTokens: 7 }, 0n)).toEqual({});
});

test("LOOP-18 each answer may have what is left of a run's tokens, and no more than its agent's allows", () => {
  const settings = create(ModelSettingsSchema, { maxOutputTokens: 100 });
  const left = (own: object, spent: bigint) => callOptionsFromSettings(settings, own, spent).maxOutputTokens;
  expect([left({}, 0n), left({}, 60n), left({}, 200n)]).toEqual([100, 40, 1]);
  expect([left({ maxOutputTokens: 50 }, 0n), left({ maxOutputTokens: 50 }, 60n)]).toEqual([50, 40]);
});

test("LOOP-18 a schema that an agent's options have for its server is passed on, and what says that it takes none is not", () => {
  const schema = { type: "object" };
  const told = (options: object) => callOptionsFromModelOptions("openai-compatible", { ...options });
  expect(told({ json_schema: schema })).toEqual({ providerOptions: { "openai-compatible": { json_schema: schema } } });
  for (const json_schema of [false, true]) expect(told({ json_schema })).toEqual({});
});

const text = { type: "string" };
test.each<[string, object, object]>([
  ["says nothing of properties", {}, { properties: {} }],
  [
    "refers to another",
    { $ref: "#/$defs/A", $defs: { A: { properties: { a: text }, required: ["a"] } } },
    { properties: { a: text }, required: ["a"] },
  ],
  ["refers to itself", { $ref: "#", allOf: Array(50).fill({ $ref: "#" }) }, { properties: {} }],
  ["refers to nothing", { $ref: "#/$defs/A" }, { properties: {} }],
  [
    "has alternatives",
    {
      properties: { id: text },
      required: ["id"],
      oneOf: [{ required: ["b"], properties: { b: text, kind: { const: 1 } } }, { properties: { kind: { const: 2 } } }],
    },
    { properties: { id: text, b: text, kind: { anyOf: [{ const: 1 }, { const: 2 }] } }, required: ["id"] },
  ],
  [
    "is of several",
    { allOf: [{ properties: { a: text }, required: ["a"] }, true], not: { required: ["b"] } },
    { properties: { a: text }, required: ["a"] },
  ],
  [
    "refers to a map",
    { $ref: "#/$defs/A%20B", $defs: { "A B": { description: "d", additionalProperties: text } } },
    { description: "d", additionalProperties: text, properties: {} },
  ],
  [
    "has a property that all objects have",
    { properties: { a: text }, anyOf: [{ properties: { constructor: text } }] },
    { properties: { a: text, constructor: text } },
  ],
  ...[{ allOf: 5 }, { $ref: 5 }, { properties: null }, { properties: { a: null } }, { required: "ab" }].map(
    (odd): [string, object, object] => [`is none: ${JSON.stringify(odd)}`, odd, { properties: {} }],
  ),
  ["may be null", { type: ["object", "null"], properties: { a: false } }, { properties: { a: false } }],
])("ORCH-7 a schema that %s is told to models as one of an object with properties", (_, given, told) => {
  const tool = { description: "", inputSchemaJson: JSON.stringify(given) };
  const { $defs: _defs, ...inputSchema } = modelToolFromTool("t", tool).inputSchema;
  expect(inputSchema).toEqual({ type: "object", ...told });
});

const numbers = Array.from({ length: 5_000 }, (_, n) => n);
test.each<[string, object]>([
  ["alternatives", { anyOf: numbers.map((n) => ({ properties: { [`p${n}`]: text } })) }],
  [
    "references",
    { $ref: "#/$defs/0", $defs: Object.fromEntries(numbers.map((n) => [n, { $ref: `#/$defs/${n + 1}` }])) },
  ],
])("SEC-5 a schema of five thousand %s costs nobody else their turn", (_, schema) => {
  const beganAtMs = performance.now();
  modelToolFromTool("t", { description: "", inputSchemaJson: JSON.stringify(schema) });
  expect(performance.now() - beganAtMs).toBeLessThan(500);
});

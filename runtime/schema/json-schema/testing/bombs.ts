// Schemas that cost much: to compile, or to match by.

export const objectOf = (properties: object) => JSON.stringify({ type: "object", properties });
export const anyOf = (depth: number): object =>
  depth === 0 ? { type: "string" } : { anyOf: [anyOf(depth - 1), anyOf(depth - 1)] };
const oneOf = Array(400).fill({ oneOf: [{ type: "array" }, { if: {}, else: { not: {} } }] });
const unicode = Array.from({ length: 90 }, (_, n) => ({ pattern: `${"[\\p{L}\\p{N}]".repeat(20)}${n}` }));
const circle = Array.from({ length: 1_000 }, (_, n) => [`p${n}`, { $ref: `#/properties/p${(n + 1) % 1_000}` }]);
const shared = Array.from({ length: 180 }, (_, n) => [`p${n}`, { $ref: "#/properties/all" }]);
const sharedBy180 = (depth: number) => objectOf({ ...Object.fromEntries(shared), all: anyOf(depth) });

/** A schema that no machine compiles in seconds: each of 180 references brings its 1,023 parts again. */
export const hugeSchema = sharedBy180(9);

/** Schemas that take a compiler seconds or hundreds of megabytes. */
export const schemaBombs: readonly (readonly [what: string, schemaJson: string])[] = [
  ["nested alternatives of 246 KB", objectOf({ a: anyOf(13) })],
  ["alternatives of 20 KB", JSON.stringify({ type: "object", oneOf })],
  [
    "two thousand properties",
    objectOf(Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`p${n}`, { type: "string" }]))),
  ],
  ["a circle of references", objectOf(Object.fromEntries(circle))],
  ["one part that many refer to", sharedBy180(5)],
  ["many classes of characters by what Unicode says of them", objectOf({ a: { allOf: unicode } })],
];

/** What makes `^(a+)+$` backtrack without end. */
export const bombText = `${"a".repeat(60)}!`;

/** Schemas of a property and what is matched, for which a backtracking engine takes longer than anybody waits. */
export const patternBombs: readonly (readonly [what: string, property: object, value: unknown])[] = [
  ["a pattern", { pattern: "^(a+)+$" }, bombText],
  ["an alternative", { pattern: "^(a|a?)+$" }, bombText],
  ["a back reference", { pattern: "^(a+)\\1*\\1*\\1*\\1*b$" }, "a".repeat(3_000)],
  ["alternatives one after the other", { pattern: `^${"(a|a)".repeat(40)}b$` }, `${"a".repeat(40)}!`],
  ["optional parts one after the other", { pattern: `^${"a?".repeat(40)}${"a".repeat(40)}$` }, `${"a".repeat(60)}!`],
  ["many patterns", { items: { pattern: "^(a+)+$" } }, Array(200).fill(`${"a".repeat(20)}!`)],
  ["names of properties", { patternProperties: { "^(a+)+$": {} } }, { [bombText]: 1 }],
];

import { describe, expect, it } from "vitest";
import { answerFrom, fieldsFrom, initialEntries } from "./fields.ts";

const approval = JSON.stringify({
  type: "object",
  properties: {
    approved: { type: "boolean", title: "Approved" },
    note: { type: "string" },
    count: { type: "integer", default: 3 },
    size: { enum: ["s", "m", 12] },
    more: { type: "array" },
  },
  required: ["approved", "count"],
});

function answer(schemaJson: string, entries: Record<string, string>): unknown {
  const fields = fieldsFrom(schemaJson);
  return JSON.parse(answerFrom(fields, { ...initialEntries(fields), ...entries }));
}

describe("a form from a schema (ORCH-12)", () => {
  it("asks for each property in its kind", () => {
    expect(fieldsFrom(approval).map(({ name, kind, isRequired }) => [name, kind, isRequired])).toEqual([
      ["approved", "yes-no", true],
      ["note", "long-text", false],
      ["count", "integer", true],
      ["size", "choice", false],
      ["more", "json", false],
    ]);
  });

  it("what is left empty is left out, defaults are filled in, choices keep their type", () => {
    expect(answer(approval, { approved: "false" })).toEqual({ approved: false, count: 3 });
    expect(answer(approval, { approved: "true", note: "go", size: "2", more: "[1]" })).toEqual({
      approved: true,
      note: "go",
      count: 3,
      size: 12,
      more: [1],
    });
  });

  it.each([
    ["what is required is missing", {}, "Approved is missing"],
    ["a number is none", { approved: "true", count: "many" }, "count is no number"],
    ["JSON is none", { approved: "true", more: "[" }, 'more is no JSON: a text stands in quotes, as "yes"'],
  ])("%s: the field is named", (_, entries, message) => {
    expect(() => answer(approval, entries)).toThrow(message);
  });

  it.each(["", "true", "{", '{"type":"string"}', "[]"])("of %j, one field asks for the answer as a whole", (schema) => {
    expect(fieldsFrom(schema)).toMatchObject([{ name: "" }]);
  });

  it("a default that does not fit writes nothing beside its own member", () => {
    const bent = 'true,"payee":"mallory"';
    const of = (type: string, required: string[] = []) =>
      JSON.stringify({ properties: { paid: { type, default: bent } }, required });
    expect(answer(of("boolean"), {})).toEqual({});
    expect(() => answer(of("boolean", ["paid"]), {})).toThrow("paid is missing");
    for (const type of ["number", "integer"]) expect(() => answer(of(type), {})).toThrow("paid is no number");
    for (const type of ["string", "array"]) expect(answer(of(type), {})).toEqual({ paid: bent });
    expect(answer(JSON.stringify({ properties: { paid: { enum: ["no"], default: bent } } }), {})).toEqual({});
  });

  it("numbers are passed on as they were written", () => {
    const fields = fieldsFrom(approval);
    const entries = {
      ...initialEntries(fields),
      approved: "true",
      count: "9007199254740993",
      more: "[1.10, 12345678901234567890]",
    };
    expect(answerFrom(fields, entries)).toBe(
      '{"approved":true,"count":9007199254740993,"more":[1.10, 12345678901234567890]}',
    );
    expect(answerFrom(fieldsFrom('{"type":"number"}'), { "": "+5" })).toBe("5");
  });

  it("an answer that is no object", () => {
    expect(answer('{"type":"string"}', { "": "yes" })).toBe("yes");
    expect(answer("", { "": '{"a":1}' })).toEqual({ a: 1 });
  });

  const heroes = [
    { const: "h1", title: "Superman" },
    { const: "h2", title: "Batman" },
  ];
  const elicited = JSON.stringify({
    properties: {
      one: { type: "string", oneOf: heroes, default: "h2" },
      named: { type: "string", enum: ["a", "b"], enumNames: ["Apple", "Pear"] },
      several: { type: "array", items: { type: "string", enum: ["Guitar", "Piano"] }, default: ["Piano"] },
      titled: { type: "array", items: { anyOf: heroes } },
      mail: { type: "string", format: "email" },
    },
    required: ["one"],
  });

  it("offers what a server lets choose by its titles, one or several", () => {
    expect(fieldsFrom(elicited).map(({ kind, labels }) => [kind, labels])).toEqual([
      ["choice", ["Superman", "Batman"]],
      ["choice", ["Apple", "Pear"]],
      ["choices", ["Guitar", "Piano"]],
      ["choices", ["Superman", "Batman"]],
      ["text", []],
    ]);
    expect(answer(elicited, {})).toEqual({ one: "h2", several: ["Piano"] });
    expect(answer(elicited, { one: "0", named: "1", several: "", titled: "0,1" })).toEqual({
      one: "h1",
      named: "b",
      titled: ["h1", "h2"],
    });
  });

  it("of several that are required, none may be chosen; a default that is no choice chooses nothing", () => {
    const schema = (more: object) =>
      JSON.stringify({
        properties: { some: { type: "array", items: { enum: ["a", "b"] }, ...more } },
        required: ["some"],
      });
    expect(answer(schema({}), {})).toEqual({ some: [] });
    for (const bent of ["a", ["c"], [0], { 0: "a" }])
      expect(answer(schema({ default: bent }), {})).toEqual({ some: [] });
  });

  it("a list whose values may repeat is asked for as JSON, as boxes have no answer for it", () => {
    const kinds = [{ minItems: 2 }, { minItems: 3 }, { uniqueItems: true }, { uniqueItems: false }].map((more) => {
      const some = { type: "array", items: { enum: ["a", "b"] }, ...more };
      return fieldsFrom(JSON.stringify({ properties: { some } }))[0]?.kind;
    });
    expect(kinds).toEqual(["choices", "json", "choices", "json"]);
    const turns = {
      type: "array",
      items: { enum: ["left", "right"] },
      minItems: 3,
      default: ["left", "left", "right"],
    };
    expect(answer(JSON.stringify({ properties: { turns } }), {})).toEqual({ turns: ["left", "left", "right"] });
  });
});

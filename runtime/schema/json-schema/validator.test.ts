import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { maxValues } from "../json/json-size.ts";
import { faultOfUse } from "../unusable.ts";
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
const faultOf = async (argumentsJson: string, of = schema) => validator.faultOfArguments(of, argumentsJson, "alice");

describe("arguments", () => {
  test("that fit have no fault", async () => {
    expect(await faultOf('{"list":[1]}')).toBeUndefined();
    expect(await faultOf("", "")).toBeUndefined();
  });

  test("that do not fit are told with all faults and their paths", async () => {
    expect(await faultOf('{"list":[1,"x"],"day":"soon","kind":"c","more":1}')).toBe(
      'arguments.more: is not a known field; arguments.list[1]: must be integer; arguments.day: must match format "date"; ' +
        'arguments.kind: must be equal to one of the allowed values ("a", "b")',
    );
  });

  test("that are no JSON or no object are told so", async () => {
    expect(await faultOf("{")).toMatch(/the arguments must be valid JSON/);
    expect(await faultOf("[]")).toBe("the arguments must be a JSON object");
  });

  test("KIND-4 that are nested too deeply are told so, whatever their schema looks at", async () => {
    const nested = `{"list":${"[".repeat(60_000)}${"]".repeat(60_000)}}`;
    expect(await faultOf(nested)).toBe("the arguments are nested deeper than 200 levels");
    expect(await faultOf(nested, "")).toBe("the arguments are nested deeper than 200 levels");
    expect(await faultOf(`{"list":["${"[".repeat(60_000)}"]}`)).toBe("arguments.list[0]: must be integer");
    expect(await faultOf(`{"list":${"[".repeat(199)}${"]".repeat(199)}}`)).toBe("arguments.list[0]: must be integer");
  });

  test("KIND-4 a result that is nested deeper than its schema can follow is told so", async () => {
    const nested = `${"[".repeat(60_000)}${"]".repeat(60_000)}`;
    const list = JSON.stringify({ type: "array", items: { $ref: "#" } });
    const message = "result cannot be checked: the schema leads further down than there is room for";
    expect(await validator.faultOfResult(list, nested, "alice")).toBe(message);
    expect(await validator.faultOfResult("", nested, "alice")).toBeUndefined();
  });

  test("KIND-4 a schema that refers to nothing but itself is told so", async () => {
    const itself = JSON.stringify({ properties: { a: { $ref: "#/properties/a" } } });
    const told = "the schema leads further down than there is room for";
    expect(await validator.faultOfSchema(itself, "alice")).toBe(told);
    expect(await faultOf("{}", itself)).toBe(`arguments cannot be checked: ${told}`);
  });

  test("SEC-5 of very many values are not read: 60 MB of them kept a process busy for half a minute", async () => {
    const many = `{"list":[${"{},".repeat(maxValues)}1]}`;
    expect(await faultOf(many)).toBe(
      `the arguments have more than ${maxValues} objects, lists and members, or ${10 * maxValues} elements of lists`,
    );
    expect(await faultOf(`{"list":[${"1,".repeat(maxValues)}1]}`)).toBeUndefined();
  });

  test("SEC-5 a result of very many values is read where it keeps nobody waiting", async () => {
    const rows = `${'{"a":1},'.repeat(maxValues)}{"a":"x"}`;
    const schema = JSON.stringify({ type: "array", items: { properties: { a: { type: "integer" } } } });
    expect(await validator.faultOfResult("", `[${rows}]`, "alice")).toBeUndefined();
    expect(await validator.faultOfResult(schema, `[${rows}]`, "alice")).toMatch("must be integer");
    expect(await validator.faultOfResult("", `[${rows}`, "alice")).toMatch("the result must be valid JSON");
  });

  test("a flood of faults is cut", async () => {
    expect(await faultOf(JSON.stringify({ list: Array(50).fill("x") }))).toMatch(/; and 45 more$/);
  });
});

describe("schemas", () => {
  test("of draft-07 and 2020-12 mean what their drafts say", async () => {
    const tuple = { type: "object", properties: { pair: { items: [{ type: "string" }], additionalItems: false } } };
    const old = JSON.stringify({ $schema: "http://json-schema.org/draft-07/schema#", ...tuple });
    expect(await faultOf('{"pair":["a","b"]}', old)).toMatch(/must NOT have more than 1 items/);
    const recent = JSON.stringify({
      type: "object",
      properties: { pair: { prefixItems: [{ type: "string" }], items: false } },
    });
    expect(await faultOf('{"pair":["a","b"]}', recent)).toMatch(/must NOT have more than 1 items/);
  });

  test("with the same $id live side by side, and are forgotten one by one", async () => {
    const small = createValidator({ maxSchemas: 2 });
    for (let n = 0; n < 5; n++) {
      const text = JSON.stringify({ $id: "https://example.org/one", type: "object", properties: { n: { const: n } } });
      expect(await small.faultOfArguments(text, `{"n":${n}}`, "alice")).toBeUndefined();
      expect(await small.faultOfArguments(text, `{"n":${n + 1}}`, "alice")).toBeDefined();
    }
  });

  test("that are none are told, and let nothing pass", async () => {
    const bad = JSON.stringify({ type: "objekt" });
    expect(await validator.faultOfSchema(bad, "alice")).toMatch(/type/);
    expect(await faultOf("{}", bad)).toMatch(/cannot be checked/);
  });

  test("KIND-4 may refer to themselves", async () => {
    const tree = { type: "object", properties: { children: { items: { $ref: "#" } }, n: { type: "integer" } } };
    for (const $schema of [undefined, "http://json-schema.org/draft-07/schema#"]) {
      const text = JSON.stringify({ $schema, ...tree });
      expect(await faultOf('{"children":[{"children":[{"n":1}]}]}', text)).toBeUndefined();
      expect(await faultOf('{"children":[{"children":[{"n":"x"}]}]}', text)).toBe(
        "arguments.children[0].children[0].n: must be integer",
      );
    }
  });

  test.each([{}, { $schema: "http://json-schema.org/draft-07/schema#" }])(
    "SEC-5 that ask the compiler for checks that end later are checked like any other, and end no process: %j",
    async (draft) => {
      const text = JSON.stringify({ ...draft, $async: true, type: "object", required: ["a"] });
      for (const one of [validator, createValidator({ isLenient: true })]) {
        expect(await one.faultOfArguments(text, '{"a":1}', "alice")).toBeUndefined();
        expect(await one.faultOfArguments(text, "{}", "alice")).toMatch(/must have required property 'a'/);
        expect(await one.faultOfSchema(text, "alice")).toBeUndefined();
      }
    },
  );

  test("that lie elsewhere are fetched by nobody", async () => {
    const text = JSON.stringify({ type: "object", properties: { a: { $ref: "https://example.org/a.json" } } });
    expect(await validator.faultOfSchema(text, "alice")).toMatch(
      /can't resolve reference https:\/\/example\.org\/a\.json/,
    );
  });

  test("are forgotten when they become too many or too large, and compiled again when they are needed", async () => {
    const textOf = (n: number) => JSON.stringify({ type: "object", description: `${n}${"x".repeat(100)}` });
    const small = createValidator({ maxCharacters: 400 });
    for (const n of [1, 2, 1, 2, 3, 4]) expect(await small.faultOfArguments(textOf(n), "{}", "alice")).toBeUndefined();
    expect(small.kept).toEqual({ schemas: 2, characters: textOf(1).length * 2 });
    expect(await small.faultOfArguments(textOf(1), "7", "alice")).toBeDefined();
  });

  test("LOOP-16 leave nothing behind when they are forgotten, good ones and bad ones", async () => {
    setFlagsFromString("--expose-gc");
    const collect: () => void = runInNewContext("gc");
    const small = createValidator({ maxSchemas: 20 });
    const use = async (count: number) => {
      for (let n = 0; n < count; n++) {
        const properties = Object.fromEntries(
          Array.from({ length: 20 }, (_, k) => [`p${k}_${Math.random()}`, { minLength: 1 }]),
        );
        const bad = n % 2 === 0 ? {} : { $ref: "#/nowhere" };
        await small.faultOfArguments(JSON.stringify({ type: "object", properties, ...bad }), "{}", "alice");
      }
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = await use(60);
    expect((await use(240)) - before).toBeLessThan(4 * 2 ** 20);
  }, 60_000);
});

describe("schemas that keep whoever reads by them busy", () => {
  const doubled = (depth: number) => {
    const $defs = Object.fromEntries(
      Array.from({ length: depth }, (_, n) => {
        const next = { $ref: `#/$defs/d${n + 1}` };
        return [`d${n}`, { allOf: [next, next] }];
      }),
    );
    return JSON.stringify({ type: "object", $ref: "#/$defs/d0", $defs: { ...$defs, [`d${depth}`]: {} } });
  };
  const branching = JSON.stringify({ type: "object", properties: { a: { allOf: [{ $ref: "#" }, { $ref: "#" }] } } });
  const nested = (depth: number) => `${'{"a":'.repeat(depth)}{}${"}".repeat(depth)}`;
  const unique = JSON.stringify({ type: "object", properties: { list: { uniqueItems: true } } });
  const many = JSON.stringify({ list: Array.from({ length: 30_000 }, (_, n) => ({ n })) });

  test.each([
    ["by references that double", doubled(50), "{}"],
    ["by branches at each level", branching, nested(50)],
    ["by comparing all with all", unique, many],
  ])("KIND-4 %s have their time, and are said to be too slow", async (_, schema, argumentsJson) => {
    expect(await faultOf(argumentsJson, schema)).toBe("arguments cannot be checked: it takes longer than 500 ms");
    expect(await faultOf("{}", JSON.stringify({ type: "object" }))).toBeUndefined();
  });

  test("KIND-4 by a reference that leads nowhere but to itself are told, and end nothing else", async () => {
    expect(await faultOf("{}", JSON.stringify({ type: "object", $ref: "#" }))).toMatch(
      /^arguments cannot be checked: /,
    );
  });

  test("as long as they are small they are read all the same", async () => {
    expect(await faultOf("{}", doubled(5))).toBeUndefined();
    expect(await faultOf(nested(5), branching)).toBeUndefined();
    expect(await faultOf('{"list":[1,2,1]}', unique)).toMatch(/must NOT have duplicate items/);
  });
});

describe("what a schema refers to, and its patterns", () => {
  test.each([
    {
      properties: { a: { $ref: "#" }, b: { $ref: "#/$defs/b" } },
      $defs: { b: { $ref: "#name" }, c: { $anchor: "name" } },
    },
    { $id: "https://example.org/a", properties: { a: { $ref: "https://example.org/a#/properties/b" }, b: {} } },
    { properties: { a: { $ref: "https://json-schema.org/draft/2020-12/schema" } } },
    { properties: { $ref: { type: "string" } }, const: { $ref: "https://example.org/data" } },
  ])("is in it: %j", async (schema) => {
    expect(faultOfUse(schema)).toBeUndefined();
    expect(await validator.faultOfSchema(JSON.stringify(schema), "alice")).toBeUndefined();
  });

  test.each(["https://example.org/b.json", "b.json", "#/nowhere", "#name", "file:///etc/passwd"])(
    "or it is told: %s",
    ($ref) => {
      expect(faultOfUse({ properties: { a: { $ref } } })).toContain(JSON.stringify($ref));
    },
  );

  test.each([{ properties: { a: { pattern: "(" } } }, { patternProperties: { "[": {} } }])(
    "or no regular expression: %j",
    (schema) => {
      expect(faultOfUse(schema)).toMatch(/is no regular expression$/);
    },
  );
});

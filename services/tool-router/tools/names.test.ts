import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createNameMatcher, modelNameFromReference, parseReference, referenceFrom } from "./names.ts";

/** Names that lie close to each other, so that collisions would be found. */
const part = fc.oneof(
  fc.string({ unit: fc.constantFrom("a", "b", "_", "-"), minLength: 1, maxLength: 6 }),
  fc.string({ unit: fc.constantFrom("a", "é", ".", "/", " ", "@", "_"), minLength: 1, maxLength: 6 }),
  fc.string({ unit: fc.constantFrom("x", "_"), minLength: 50, maxLength: 70 }),
);
const source = fc.string({ unit: fc.constantFrom("a", "b", "_", ".", "-"), minLength: 1, maxLength: 6 });
const reference = fc.oneof(
  part.filter((name) => parseReference(name).source === undefined),
  fc.tuple(source, part).map(([name, tool]) => referenceFrom(name, tool)),
);

describe("names of tools for models", () => {
  test("ORCH-4 every name fits what providers of models accept", () => {
    fc.assert(
      fc.property(reference, (one) => {
        expect(modelNameFromReference(one)).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      }),
    );
  });

  test("ORCH-4 two references never share a name, not even one that is spelled like another's name", () => {
    fc.assert(
      fc.property(reference, reference, (one, other) => {
        fc.pre(one !== other);
        const name = modelNameFromReference(one);
        expect(modelNameFromReference(other)).not.toBe(name);
        if (name !== one) expect(modelNameFromReference(name)).not.toBe(name);
      }),
      { numRuns: 2_000 },
    );
  });

  test("ORCH-4 a source's tool never takes the name that a bare tool could have, however both are spelled", () => {
    const names = ["@a/b__c", "@a__b/c", "a__b__c", "@a_/b", "@a/_b", "a___b"].map((one) =>
      modelNameFromReference(one),
    );
    expect(new Set(names).size).toBe(names.length);
  });

  test("ORCH-4 plain names stay readable", () => {
    expect(modelNameFromReference("@files/read_file")).toBe("files__read_file");
    expect(modelNameFromReference("send_message")).toBe("send_message");
    expect(modelNameFromReference("@my.files/läs")).toMatch(/^my_files_l_s__[0-9a-f]{16}$/);
  });

  test("an alias keeps its name: a tool that is spelled like it goes by another", () => {
    const aliases = new Map([["myapp_read", "@files/read"]]);
    expect(modelNameFromReference("myapp_read", aliases)).toMatch(/^myapp_read__[0-9a-f]{16}$/);
    expect(modelNameFromReference("myapp_write", aliases)).toBe("myapp_write");
  });
});

describe("patterns", () => {
  test.each([
    ["*", "@files/read", true],
    ["*", "echo", true],
    ["@files/*", "@files/read", true],
    ["@files/*", "@files/a/b", true],
    ["@files/*", "@files2/read", false],
    ["@files/re*", "@files/write", false],
    ["@*/read", "@files/read", true],
    ["@fi*/read", "@files/x/read", false],
    ["get_*", "get_time", true],
    ["get_*", "@clock/get_time", false],
    ["get.time", "getxtime", false],
    ["@files", "@files/read", false],
  ])("ORCH-2 %s and %s: %s", (pattern, name, fits) => {
    expect(createNameMatcher([pattern])(name)).toBe(fits);
  });

  test("a reference without a star fits itself and nothing else", () => {
    fc.assert(
      fc.property(reference, reference, (one, other) => {
        fc.pre(!one.includes("*"));
        expect(createNameMatcher([one])(other)).toBe(one === other);
      }),
    );
  });

  test("SEC-5 a pattern of many stars is decided at once, and as a regular expression would", () => {
    const unit = fc.constantFrom("a", "b", "*", "/", "@");
    const expected = (pattern: string, name: string) => {
      const { source, tool } = parseReference(pattern);
      const named = parseReference(name);
      const fits = (glob: string, text: string) => new RegExp(`^${glob.replaceAll("*", ".*")}$`, "s").test(text);
      if (source === undefined) return !name.startsWith("@") && fits(tool, name);
      return named.source !== undefined && fits(source, named.source) && fits(tool, named.tool);
    };
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 8 }), fc.string({ unit, maxLength: 8 }), (pattern, name) => {
        fc.pre(pattern.includes("*") && pattern !== "*");
        expect(createNameMatcher([pattern])(name)).toBe(expected(pattern, name));
      }),
      { numRuns: 2_000 },
    );
    const startedAt = performance.now();
    const matches = createNameMatcher(Array.from({ length: 900 }, (_, n) => `${"*a".repeat(240)}*b${n}`));
    expect(matches("a".repeat(512))).toBe(false);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});

import { expect, test } from "vitest";
import { computedMs, tickedMs } from "../../time/testing/machine-time.ts";
import { anyOf, hugeSchema, objectOf, schemaBombs } from "./testing/bombs.ts";
import { createTimeLimit, OutOfTime } from "./time-limit.ts";
import { createValidator } from "./validator.ts";

test.each([...schemaBombs])(
  "SEC-5 a schema with %s is compiled on no thread that others wait for",
  async (_, schemaJson) => {
    const validator = createValidator();
    await validator.faultOfArguments(objectOf({ a: anyOf(2) }), "{}", "mallory"); // whatever the first of all costs
    // on the thread that asks, for which others of its service wait
    const ms = await computedMs(() => validator.faultOfArguments(schemaJson, '{"a":"é"}', "mallory"));
    expect(ms).toBeLessThan(150);
  },
);

test("SEC-5 a schema that takes too long or too much memory is refused with the limits, and not tried again soon", async () => {
  const validator = createValidator();
  const refusal =
    /cannot be checked: the schema takes longer than 3000 ms or more than 256 MB .* tried again after 60 s/;
  const first = await validator.faultOfArguments(hugeSchema, "{}", "mallory");
  expect(first).toMatch(refusal);
  const startedAt = tickedMs();
  expect(await validator.faultOfArguments(hugeSchema, "{}", "alice")).toEqual(first);
  expect(tickedMs() - startedAt).toBeLessThan(2_000); // another try would take 3,000
}, 60_000);

test("SEC-5 of one principal's heavy checks 200 wait, and each result of a tool that ran, for which there is no second try", async () => {
  const validator = createValidator();
  const many = Array.from({ length: 210 });
  const heavy = `[${"{},".repeat(5_001)}{}]`;
  const results = await Promise.all(many.map(() => validator.faultOfResult("", heavy, "ada")));
  expect(results.filter((fault) => fault !== undefined)).toEqual([]);
  const args = `{"all":${heavy}}`;
  const refusal = "arguments cannot be checked: 200 checks of the same caller wait already";
  const faults = await Promise.all(many.map(() => validator.faultOfArguments("", args, "ada")));
  expect(faults.filter((fault) => fault !== undefined)).toEqual(Array.from({ length: 9 }, () => refusal));
}, 60_000);

test.each([
  ["a file to be written", { path: { type: "string" }, mode: { enum: ["w", "a"] }, content: { type: "string" } }, true],
  ["a text whose length counts", { path: { type: "string" }, content: { type: "string", minLength: 1 } }, false],
  ["a text with a pattern", { path: { type: "string" }, content: { type: "string", pattern: "^a*$" } }, false],
])(
  "SEC-5 arguments with a long text are judged at once where no rule goes through it: %s",
  async (_, properties, isAtOnce) => {
    const schemaJson = JSON.stringify({ type: "object", properties, required: ["path"], additionalProperties: false });
    const argumentsJson = JSON.stringify({ path: "a", content: "a".repeat(2_000_000) });
    const fault = createValidator().faultOfArguments(schemaJson, argumentsJson, "ada");
    expect(fault instanceof Promise).toBe(!isAtOnce);
    expect(await fault).toBeUndefined();
    const many = JSON.stringify({ path: "a", content: "a".repeat(5_000_000) });
    expect(createValidator().faultOfArguments(schemaJson, many, "ada")).toBeInstanceOf(Promise);
  },
);

/** Work that takes its time without a processor, as on a machine that gives it none. */
const starved = (ms: number) => () => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  return "done";
};

test("KIND-4 work that a busy machine gave no time is begun once more, with more of it, where it may be", () => {
  const limit = createTimeLimit(100);
  expect(() => limit.run(starved(200))).toThrow(OutOfTime);
  const begunAgain: string[] = [];
  expect(limit.run(starved(200), () => begunAgain.push("again"))).toBe("done");
  expect(begunAgain).toEqual(["again"]);
  expect(() => limit.run(starved(1_000), () => {})).toThrow(OutOfTime);
});

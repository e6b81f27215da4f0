import { expect, test } from "vitest";
import { z } from "zod";
import { Failure } from "../../failure/failure.ts";
import { builtInArguments } from "./built-in-tool.ts";

function refusalOf(form: z.ZodObject, value: object): Failure {
  try {
    builtInArguments(form, JSON.stringify(value));
  } catch (error) {
    if (error instanceof Failure) return error;
  }
  throw new Error("it was not refused");
}

test("arguments that are not in their form are refused by the places at fault", () => {
  const form = z.object({ entries: z.array(z.object({ key: z.string() })) });
  const { message } = refusalOf(form, { entries: [{ key: 1 }] });
  expect(message).toBe("entries[0].key: Invalid input: expected string, received number");
});

test("SEC-5 a refusal of arguments stays short, whatever names they have", () => {
  const form = z.strictObject({ values: z.record(z.string(), z.number()).optional() });
  const unknown = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`unknown name ${n}`, 1]));
  for (const value of [unknown, { values: { ["x".repeat(1_000_000)]: "no number" } }]) {
    expect(JSON.stringify(refusalOf(form, value).fieldViolations).length).toBeLessThan(3_000);
  }
});

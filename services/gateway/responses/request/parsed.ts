import type { z } from "zod";
import { refuse } from "#runtime/failure/failure.ts";

/** Of a body that has faults without number, the first are told. */
const MOST_TOLD = 10;

/** The value in the form of the schema; else it is refused, naming the places that are at fault. */
export function parsed<S extends z.ZodType>(schema: S, value: unknown, place = ""): z.infer<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const fieldViolations = result.error.issues.slice(0, MOST_TOLD).map((issue) => ({
    field: pathText([...(place === "" ? [] : [place]), ...issue.path]),
    message: issue.message,
  }));
  const message = fieldViolations.map(({ field, message: fault }) => `${field || "the body"}: ${fault}`).join("; ");
  return refuse("invalid_argument", message, { reason: "INVALID_REQUEST", fieldViolations });
}

function pathText(path: readonly PropertyKey[]): string {
  return path.map((key, n) => (typeof key === "number" ? `[${key}]` : `${n > 0 ? "." : ""}${String(key)}`)).join("");
}

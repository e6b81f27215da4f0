import type { z } from "zod";
import { refuse } from "../failure/failure.ts";

/** Of a value that has faults without number, the first are told. */
const MOST_TOLD = 10;

/** The value in its form; else it is refused, naming the places that are at fault, which begin with `place`. */
export function inForm<F extends z.ZodType>(form: F, value: unknown, place = ""): z.infer<F> {
  const { success, data, error } = form.safeParse(value);
  if (success) return data;
  const fieldViolations = error.issues.slice(0, MOST_TOLD).map((issue) => ({
    field: pathText([...(place === "" ? [] : [place]), ...issue.path]),
    message: issue.message,
  }));
  const message = fieldViolations.map(({ field, message: fault }) => (field ? `${field}: ${fault}` : fault)).join("; ");
  return refuse("invalid_argument", message, { reason: "INVALID_REQUEST", fieldViolations });
}

function pathText(path: readonly PropertyKey[]): string {
  return path.map((key, n) => (typeof key === "number" ? `[${key}]` : `${n > 0 ? "." : ""}${String(key)}`)).join("");
}

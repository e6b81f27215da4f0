import type { z } from "zod";
import { shortened } from "../content/shortened.ts";
import { refuse } from "../failure/failure.ts";

/** Of a value that has faults without number, or names without end, the first are told, and their beginnings. */
const [MOST_TOLD, MOST_CHARACTERS] = [10, 1_000];

/** The value in its form; else it is refused, naming the places that are at fault, which begin with `place`. */
export function inForm<F extends z.ZodType>(form: F, value: unknown, place = ""): z.infer<F> {
  const { success, data, error } = form.safeParse(value);
  if (success) return data;
  const fieldViolations = error.issues.slice(0, MOST_TOLD).map(({ path, message }) => ({
    field: shortened(pathText(place === "" ? path : [place, ...path]), MOST_CHARACTERS),
    message: shortened(message, MOST_CHARACTERS),
  }));
  const message = fieldViolations.map(({ field, message: fault }) => (field ? `${field}: ${fault}` : fault)).join("; ");
  return refuse("invalid_argument", message, { reason: "INVALID_REQUEST", fieldViolations });
}

function pathText(path: readonly PropertyKey[]): string {
  return path.map((key, n) => (typeof key === "number" ? `[${key}]` : `${n > 0 ? "." : ""}${String(key)}`)).join("");
}

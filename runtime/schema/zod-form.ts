import { z } from "zod";
import { refuse } from "../failure/failure.ts";

/** The value in its form; else it is refused, in zod's words. */
export function inForm<F extends z.ZodType>(form: F, value: unknown): z.infer<F> {
  const { success, data, error } = form.safeParse(value);
  return success ? data : refuse("invalid_argument", z.prettifyError(error), { reason: "INVALID_REQUEST" });
}

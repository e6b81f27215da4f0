import { createChecker } from "./checker.ts";
import { CHECK_MS, COMPILE_MS } from "./limits.ts";

/** The work of a thread of the pool in `checker-pool.ts`, which holds what it compiled for as long as it lives. */
export default createChecker({
  compileMs: COMPILE_MS,
  checkMs: CHECK_MS,
  maxSchemas: 1_000,
  maxCharacters: 512 * 1_024,
});

/** A schema that takes longer to compile is not used. The largest of real servers, of 100 KB, take a tenth of that. */
export const COMPILE_MS = 3_000;

/** To check a value by a compiled schema, its patterns included. */
export const CHECK_MS = 500;

/** Characters of one schema, wherever it comes from. The largest that are known from public servers have some 100,000. */
export const MAX_SCHEMA_CHARACTERS = 256 * 1_024;

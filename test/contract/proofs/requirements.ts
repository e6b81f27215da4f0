/** How many requirements each family has: `KIND: 4` are KIND-1 to KIND-4. One that is added here needs its proofs. */
const families = { KIND: 4, CTR: 11, LOOP: 18, TOOL: 14, WORK: 12, ORCH: 13, BUS: 6, SEC: 8, DOOR: 5, PROD: 5 };

export const requirementIds: readonly string[] = Object.entries(families).flatMap(([family, last]) =>
  Array.from({ length: last }, (_, index) => `${family}-${index + 1}`),
);

/** What is written like an id of a requirement, known or not. */
export const requirementPattern = new RegExp(`\\b(?:${Object.keys(families).join("|")})-\\d+`, "g");

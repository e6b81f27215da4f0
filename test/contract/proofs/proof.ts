/**
 * What shows that a requirement holds, as data. A requirement is split into parts, about a sentence each; of each part either
 * tests are named that fail when it does not hold, or it is open, with what is missing. `proofs.test.ts` holds the data to the tree.
 *
 * A test is cited by words of its title, the group's before it, that no other test has. In Python they are the name of the test's
 * function; of `npm run check` they are a check's name.
 */

export type Part =
  | { readonly kind: "shown"; readonly claim: string; readonly citations: readonly string[] }
  | { readonly kind: "open"; readonly claim: string; readonly missing: string };

/** By the id of a requirement, or by the name of a scenario. */
export type Proofs = Readonly<Record<string, readonly Part[]>>;

/** Each of the tests fails when its share of the claim does not hold. */
export function shown(claim: string, ...citations: string[]): Part {
  return { kind: "shown", claim, citations };
}

/** Nothing shows it yet. What is missing is one sentence. */
export function open(claim: string, missing: string): Part {
  return { kind: "open", claim, missing };
}

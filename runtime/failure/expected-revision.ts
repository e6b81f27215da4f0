import { refuse } from "./failure.ts";

/** What is to be changed, the revision that stands of it (0 for nothing), and the one that who changes it knows. */
export interface Expectation {
  what: string;
  name: string;
  revision: number;
  /** Undefined: whatever stands; 0: nothing. */
  expected: bigint | undefined;
}

/** Refuses a change by somebody who does not know what stands, so that of two editors at once one is told. */
export function requireRevision({ what, name, revision, expected }: Expectation): void {
  if (expected === undefined || expected === BigInt(revision)) return;
  const standing = revision === 0 ? "does not exist" : `stands at revision ${revision}`;
  const wanted = expected === 0n ? "it was expected not to exist yet" : `revision ${expected} was expected`;
  refuse("aborted", `${what} ${JSON.stringify(name)} ${standing}, ${wanted}: read it and try again`, {
    reason: "REVISION_MISMATCH",
    metadata: { name, current_revision: String(revision), expected_revision: String(expected) },
  });
}

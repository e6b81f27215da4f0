/** How often a request has gone from one instance of the bridge to another. */
export const HOPS_HEADER = "toolbus-bridge-hops";
/** Set by an instance that asks each of the others for its own part. */
export const OWN_PART_HEADER = "toolbus-bridge-own-part";

/** Whatever is no whole number would never reach the bound: it is above it. */
export function hopsFrom(text: string | null): number {
  if (text === null) return 0;
  return /^\d+$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
}

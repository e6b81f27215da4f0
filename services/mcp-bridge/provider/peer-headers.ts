/** How often a request has gone from one instance of the bridge to another. */
export const HOPS_HEADER = "toolbus-bridge-hops";

/** Whatever is no whole number would never reach the bound: it is above it. */
export function hopsFrom(text: string | null): number {
  if (text === null) return 0;
  return /^\d+$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
}

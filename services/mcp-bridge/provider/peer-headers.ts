/** How often a request has gone from one instance of the bridge to another. */
export const HOPS_HEADER = "toolbus-bridge-hops";
/** Set by an instance that asks each of the others for its own part. */
export const OWN_PART_HEADER = "toolbus-bridge-own-part";

import type { ToldUse } from "#runtime/money/run-share.ts";

/** How a call of a tool ended. */
export type Answer = ({ kind: "result"; resultJson: string } | { kind: "error"; error: string }) & {
  /** What was done on the call's behalf, by tools that can have that done. */
  used?: ToldUse;
};

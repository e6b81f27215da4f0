export interface Findings {
  /** Every fault found, as lines to print; none when the check passes. */
  readonly faults: readonly string[];
  /** What was measured, told whether the check passes or not. */
  readonly figures: readonly string[];
}

/** When the two ends of a call speak and when they give up. Both ends of a bus use the same values. */
export interface Timings {
  /** A side that has sent nothing for this long says that it is alive. */
  readonly heartbeatMs: number;
  /** A side that has heard nothing for this long takes its peer for dead. */
  readonly silenceMs: number;
}

export const DEFAULT_TIMINGS: Timings = { heartbeatMs: 1_000, silenceMs: 3_000 };

import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";

/** An event with what only services know of it (`StoredRunEvent`). */
export interface LogRecord {
  readonly event: RunEvent;
  /** The claim under which it was written; 0 for none. */
  readonly epoch: number;
  /** Of a claim: the process. */
  readonly instance: string;
}

/** A record and where it stands in the store: what the next append has to follow. */
export interface StoredEvent extends LogRecord {
  readonly position: number;
}

/** What was read of a log: the records that could be read, and where the last one stands, which need not be one of them. */
export interface LogPart {
  readonly records: readonly StoredEvent[];
  readonly position: number;
}

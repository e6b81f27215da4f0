import type { Audit } from "#runtime/audit/trail.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { CallRecord } from "./record/call-record.ts";

/** The bucket of recorded calls, and the events that tell routers of its changes. */
export interface CallStore {
  read(callId: string): Promise<CallRecord | undefined>;
  /** The record as this router last saw it; that of an open call may be stale. Reads it when this router has not seen it. */
  readCached(callId: string): Promise<CallRecord | undefined>;
  /** False when the call has a record. */
  create(record: CallRecord): Promise<boolean>;
  /** Writes what `decide` returns, and decides again if somebody else wrote meanwhile; undefined writes nothing. */
  update(callId: string, decide: (record: CallRecord) => CallRecord | undefined): Promise<Updated | undefined>;
  /** All calls by id, without reading their records: one may have left. */
  list(signal: AbortSignal): Promise<ReadonlyMap<string, ListedCall>>;
  /** Tells all routers that a call's record has changed. */
  announce(callId: string): void;
}

/** What is known of a call without reading its record. */
export type ListedCall = Pick<CallRecord, "state" | "sessionId" | "principal" | "taken" | "watcherPrincipal">;

/** What whoever changes recorded calls needs. */
export interface RecordingParts {
  store: CallStore;
  audit: Audit;
  clock: Clock;
}

interface Updated {
  /** The record after the update, and whether this update wrote it. */
  readonly record: CallRecord;
  readonly hasChanged: boolean;
  readonly before: CallRecord;
}

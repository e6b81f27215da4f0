import type { Stored } from "#runtime/bus/buckets/bucket.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { Audit } from "../../catalogue/audit/audit.ts";
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
  /** All records, or those of a part. */
  list(signal: AbortSignal, part?: CallsPart): AsyncIterable<Stored<CallRecord>>;
  /** The calls that wait for an answer from outside. */
  listOpen(signal: AbortSignal): Promise<Iterable<OpenCall>>;
  /** Tells all routers that a call's record has changed. */
  announce(callId: string): void;
}

/** What is known of a call that is open without reading its record. */
export type OpenCall = Pick<
  CallRecord,
  "callId" | "state" | "tool" | "sessionId" | "principal" | "taken" | "watcherPrincipal"
>;

/** What whoever changes recorded calls needs. */
export interface RecordingParts {
  store: CallStore;
  audit: Audit;
  clock: Clock;
}

export interface CallsPart {
  /** Of a session, which was created at that time. */
  readonly session?: { readonly id: string; readonly createdAtMs: number } | undefined;
  /** That name the principal: its own, and those that it has taken. */
  readonly principal?: string | undefined;
}

interface Updated {
  /** The record after the update, and whether this update wrote it. */
  readonly record: CallRecord;
  readonly hasChanged: boolean;
  readonly before: CallRecord;
}

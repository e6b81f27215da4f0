import { BoundedMap } from "#runtime/collections/bounded-map.ts";
import type { CallRecord } from "../../calls/records/record/call-record.ts";

export interface CachedCall {
  record: CallRecord;
  revision: number;
}

const MOST_CALLS = 4_096;
/** Larger records are read by those who need them; neither the cache nor an event holds them. */
const MAX_BYTES = 8_192;

/**
 * The records that this router has written, read or heard of lately. A write that follows from one is fenced by its revision, so
 * a stale one does no harm; only a reading proves that a record is stale.
 */
export class CachedCalls {
  readonly #calls = new BoundedMap<string, CachedCall>(MOST_CALLS);

  has(callId: string): boolean {
    return this.#calls.has(callId);
  }

  get(callId: string): CachedCall | undefined {
    return this.#calls.get(callId);
  }

  /** Whether this revision, or a later one, is here. */
  isKnown(callId: string, revision: number): boolean {
    return (this.#calls.get(callId)?.revision ?? 0) >= revision;
  }

  /** `bytes` is the record's size, when it is known. */
  put(record: CallRecord, revision: number, bytes?: number): void {
    const { callId } = record;
    if ((bytes ?? sizeOf(record)) > MAX_BYTES) this.forget(callId);
    else if (!this.isKnown(callId, revision)) this.#calls.set(callId, { record, revision });
  }

  forget(callId: string): void {
    this.#calls.delete(callId);
  }

  forgetAll(): void {
    this.#calls.clear();
  }
}

function sizeOf({ argumentsJson, result }: CallRecord): number {
  return argumentsJson.length + (result?.outputJson.length ?? 0);
}

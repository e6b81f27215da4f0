import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import type { CallRecord } from "../../../calls/records/record/call-record.ts";

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

  put(record: CallRecord, revision: number): void {
    const { callId } = record;
    if (sizeOf(record) > MAX_BYTES) this.forget(callId);
    else if (!this.isKnown(callId, revision)) this.#calls.set(callId, { record, revision });
  }

  forget(callId: string): void {
    this.#calls.delete(callId);
  }

  forgetAll(): void {
    this.#calls.clear();
  }
}

/** Without what is small in every record. */
function sizeOf({ argumentsJson, outputSchemaJson, result }: CallRecord): number {
  const { outputJson = "", metaJson = "", content = [] } = result ?? {};
  const contentLength = content.reduce((sum, { blockJson }) => sum + blockJson.length, 0);
  return argumentsJson.length + outputSchemaJson.length + outputJson.length + metaJson.length + contentLength;
}

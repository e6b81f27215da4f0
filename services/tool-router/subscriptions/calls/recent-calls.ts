import { BoundedMap } from "#runtime/collections/bounded-map.ts";
import type { CallRecord } from "../../calls/records/call-record.ts";

export interface RecentCall {
  record: CallRecord;
  revision: number;
}

const MOST = 4_096;

/**
 * The calls that this router has to do with, as the news has them. What is here is a guess, never older than it was: a write
 * that follows from it is fenced by its revision, and only a reading refutes it.
 */
export class RecentCalls {
  readonly #calls = new BoundedMap<string, RecentCall>(MOST);

  has(callId: string): boolean {
    return this.#calls.has(callId);
  }

  get(callId: string): RecentCall | undefined {
    return this.#calls.get(callId);
  }

  /** Whether as much is known. */
  isKnown(callId: string, revision: number): boolean {
    return (this.#calls.get(callId)?.revision ?? 0) >= revision;
  }

  put(record: CallRecord, revision: number): void {
    const { callId } = record;
    if (this.isKnown(callId, revision)) return;
    this.#calls.set(callId, { record, revision });
  }

  forget(callId: string): void {
    this.#calls.delete(callId);
  }

  forgetAll(): void {
    this.#calls.clear();
  }
}

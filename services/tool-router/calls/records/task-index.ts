import type { CallRecord } from "./record/call-record.ts";

/**
 * Which calls their principals asked for as tasks, in the order of their creation. A call is entered before its record is written: an
 * entry may be of a call that never came, or that is not kept any more, and no task is missing, unless there was no room for its entry.
 */
export interface TaskIndex {
  add(record: Pick<CallRecord, "callId" | "principal">): Promise<void>;
  /** At most so many of a principal's, behind a place. */
  read(principal: string, part: { after: number; limit: number; signal: AbortSignal }): Promise<TaskEntry[]>;
  remove(principal: string, entry: TaskEntry): Promise<void>;
}

export interface TaskEntry {
  readonly callId: string;
  readonly place: number;
  readonly createdAtMs: number;
}

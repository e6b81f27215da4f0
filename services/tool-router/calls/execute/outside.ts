import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { type Answer, failure } from "../answers/answer.ts";
import { endWait } from "../due-work/due-work.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import { isExternal } from "../records/record/states.ts";
import { pending, timedOut, toldAnswer } from "../records/record/told-answer.ts";
import type { Begun } from "../records/records.ts";
import type { RecordingParts } from "../records/store.ts";
import { ABSENCE_GRACE_MS, type Absence } from "../watchers/absence.ts";
import type { CallQueue } from "../watchers/ports.ts";
import type { Deadline } from "./limits/deadline.ts";
import { openWait } from "./limits/wait.ts";

/** A recorded call, and whether it was recorded by this execution. */
export type Opened = Pick<Extract<Begun, { kind: "open" }>, "record" | "isMine">;

export interface OutsideParts extends RecordingParts {
  /** Of changes of recorded calls, by the call. */
  waiters: KeyedListeners;
  queue: CallQueue;
  absence: Absence;
}

export type Outside = ReturnType<typeof createOutside>;

/** TOOL-4 and TOOL-8: calls that a person in the space or an external service answers. */
export function createOutside({ store, waiters, queue, absence, audit, clock }: OutsideParts) {
  async function execute(opened: Opened, isAsync: boolean, deadline: Deadline, signal: AbortSignal): Promise<Answer> {
    const { callId, createTime: createdAt } = opened.record;
    if (isAsync) {
      await enqueue(opened, State.PENDING);
      return toldAnswer(await store.readCached(callId)) ?? pending(callId);
    }
    const createdAtMs = createdAt === undefined ? clock.now() : timestampMs(createdAt);
    const leftMs = Math.min(deadline.at, createdAtMs + deadline.timeoutMs) - clock.now();
    if (leftMs <= 0) return toldAnswer(await endWait(store, callId, audit)) ?? timedOut(deadline.timeoutMs);
    return wait(opened, deadline, leftMs, signal);
  }

  async function wait(opened: Opened, deadline: Deadline, leftMs: number, signal: AbortSignal): Promise<Answer> {
    const { record } = opened;
    using waiting = openWait(clock, leftMs, signal);
    const { signal: ends, end } = waiting;
    const offered = enqueue(opened, State.WAITING);
    offered.catch(end);
    const leaveAbsence = followAbsence(record, end);
    try {
      return await waiters.until(record.callId, () => read(record.callId), ends);
    } catch (error) {
      await offered.catch(() => {}); // its due work enqueues it again
      const answer = toldAnswer(await endWait(store, record.callId, audit));
      if (signal.aborted && answer === undefined) throw signal.reason;
      if (!ends.aborted) throw error;
      return answer ?? timedOut(deadline.timeoutMs);
    } finally {
      leaveAbsence();
    }
  }

  /** The answer, if there is one; else the record says that somebody waits. */
  async function read(callId: string): Promise<Answer | undefined> {
    const record = await store.readCached(callId);
    if (record?.state !== State.PENDING) return toldAnswer(record);
    const updated = await store.update(callId, (standing) =>
      standing.state === State.PENDING ? { ...standing, state: State.WAITING } : undefined,
    );
    return toldAnswer(updated?.record);
  }

  /** dispatcher-1: done by the router that created the record. For an older record its due work does it. */
  async function enqueue({ record, isMine }: Opened, state: State): Promise<void> {
    if (!isExternal(record) || !isMine) return;
    try {
      if (!queue.deliver(record)) await queue.enqueue(record, "first");
    } catch (error) {
      const text = `the call could not be offered to a watcher: ${messageFromUnknown(error)}`;
      await dismiss(record, state, failure(text));
    }
  }

  /** TOOL-6: a service that is down is said to be down, as long as nobody has taken the call. */
  function followAbsence(record: CallRecord, onFault: (error: unknown) => void): () => void {
    if (!isExternal(record)) return () => {};
    const text = `Tool "${record.tool}" has no watcher: no service that executes it was there within ${ABSENCE_GRACE_MS}ms`;
    const end = () => dismiss(record, State.WAITING, failure(text));
    return absence.follow(record.tool, () => void end().catch(onFault));
  }

  /** Ends a call that no watcher has acknowledged, while its caller waits. */
  async function dismiss(record: CallRecord, state: State, result: Answer): Promise<void> {
    const updated = await store.update(record.callId, (standing) =>
      standing.state === state && !standing.taken ? { ...standing, state: State.RESOLVED, result } : undefined,
    );
    if (!updated?.hasChanged) return;
    store.announce(record.callId);
    await queue.remove(record).catch(() => {}); // a router that gets it from there reads that it is resolved
  }

  return { execute };
}

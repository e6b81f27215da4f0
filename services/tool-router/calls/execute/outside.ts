import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { type Answer, failure } from "../answers/answer.ts";
import { endWait } from "../due-work/due-work.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import { isExternal } from "../records/record/states.ts";
import { pending, timedOut, toldAnswer } from "../records/record/told-answer.ts";
import type { Begun } from "../records/records.ts";
import type { RecordingParts } from "../records/store.ts";
import type { Waiters } from "../records/waiters.ts";
import { ABSENCE_GRACE_MS, type Absence } from "../watchers/absence.ts";
import type { CallQueue } from "../watchers/ports.ts";
import type { Deadline } from "./deadline.ts";

/** A recorded call, and whether it was recorded by this execution. */
export type Opened = Pick<Extract<Begun, { kind: "open" }>, "record" | "isMine">;

export interface OutsideParts extends RecordingParts {
  waiters: Waiters;
  queue: CallQueue;
  absence: Absence;
}

/** TOOL-4 and TOOL-8: calls that a person in the space or an external service answers. */
export class Outside {
  readonly #parts: OutsideParts;

  constructor(parts: OutsideParts) {
    this.#parts = parts;
  }

  async execute(opened: Opened, isAsync: boolean, deadline: Deadline, signal: AbortSignal): Promise<Answer> {
    const { store, clock, audit } = this.#parts;
    const { callId, createTime: createdAt } = opened.record;
    if (isAsync) {
      await this.#enqueue(opened, State.PENDING);
      return toldAnswer(await store.readCached(callId)) ?? pending(callId);
    }
    const createdAtMs = createdAt === undefined ? clock.now() : timestampMs(createdAt);
    const leftMs = Math.min(deadline.at, createdAtMs + deadline.timeoutMs) - clock.now();
    if (leftMs <= 0) return toldAnswer(await endWait(store, callId, audit)) ?? timedOut(deadline.timeoutMs);
    return this.#wait(opened, deadline, leftMs, signal);
  }

  async #wait(opened: Opened, deadline: Deadline, leftMs: number, signal: AbortSignal): Promise<Answer> {
    const { store, waiters, clock, audit } = this.#parts;
    const { record } = opened;
    using ending = openEnding(signal);
    const ends = ending.signal;
    const end = (reason: unknown) => ending.end(reason);
    void clock.delay(leftMs, ends).then(
      () => end(new Error("the time is over")),
      () => {},
    ); // the wait has ended
    const offered = this.#enqueue(opened, State.WAITING);
    offered.catch(end);
    const leaveAbsence = this.#followAbsence(record, end);
    try {
      return await waiters.until(record.callId, () => this.#read(record.callId), ends);
    } catch (error) {
      await offered.catch(() => {}); // its due work enqueues it again
      const answer = toldAnswer(await endWait(store, record.callId, audit));
      if (signal.aborted && answer === undefined) throw signal.reason;
      if (!ends.aborted) throw error;
      return answer ?? timedOut(deadline.timeoutMs);
    } finally {
      leaveAbsence();
      end(OVER);
    }
  }

  /** The answer, if there is one; else the record says that somebody waits. */
  async #read(callId: string): Promise<Answer | undefined> {
    const { store } = this.#parts;
    const record = await store.readCached(callId);
    if (record?.state !== State.PENDING) return toldAnswer(record);
    const updated = await store.update(callId, (standing) =>
      standing.state === State.PENDING ? { ...standing, state: State.WAITING } : undefined,
    );
    return toldAnswer(updated?.record);
  }

  /** W1: done by the router that created the record. For an older record its due work does it. */
  async #enqueue({ record, isMine }: Opened, state: State): Promise<void> {
    if (!isExternal(record) || !isMine) return;
    const { queue } = this.#parts;
    try {
      if (!queue.deliver(record)) await queue.enqueue(record, "first");
    } catch (error) {
      const text = `the call could not be offered to a watcher: ${messageFromUnknown(error)}`;
      await this.#dismiss(record, state, failure(text));
    }
  }

  /** TOOL-6: a service that is down is said to be down, as long as nobody has taken the call. */
  #followAbsence(record: CallRecord, onFault: (error: unknown) => void): () => void {
    if (!isExternal(record)) return () => {};
    const text = `Tool "${record.tool}" has no watcher: no service that executes it was there within ${ABSENCE_GRACE_MS}ms`;
    const dismiss = () => this.#dismiss(record, State.WAITING, failure(text));
    return this.#parts.absence.follow(record.tool, () => void dismiss().catch(onFault));
  }

  /** Ends a call that no watcher has acknowledged, while its caller waits. */
  async #dismiss(record: CallRecord, state: State, result: Answer): Promise<void> {
    const { store, queue } = this.#parts;
    const updated = await store.update(record.callId, (standing) =>
      standing.state === state && !standing.taken ? { ...standing, state: State.RESOLVED, result } : undefined,
    );
    if (!updated?.hasChanged) return;
    store.announce(record.callId);
    await queue.remove(record).catch(() => {}); // a router that gets it from there reads that it is resolved
  }
}

/** Made once: nobody reads the stack of an error that each wait would make. */
const OVER = new Error("the wait is over");

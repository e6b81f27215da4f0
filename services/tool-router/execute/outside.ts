import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ToolCallState as State, type ToolCallRecord } from "#gen/toolbus/router/v1/tool_calls_pb.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { type Answer, failure, success } from "../answer.ts";
import type { CallStore } from "../record.ts";
import type { Waiters } from "../waiters.ts";
import type { Deadline } from "./deadline.ts";

/** TOOL-4 and TOOL-8: calls that somebody outside answers, a person in the space or an external service. */
export interface Outside {
  execute(record: ToolCallRecord, isAsync: boolean, deadline: Deadline, signal: AbortSignal): Promise<Answer>;
}

export function createOutside(store: CallStore, waiters: Waiters, clock: Clock): Outside {
  /** The winner's answer when there is one; else nobody waits from here on, and a result goes to the inbox. */
  async function giveUp(callId: string, otherwise: Answer): Promise<Answer> {
    const updated = await store.update(callId, (record) =>
      record.state === State.WAITING ? { ...record, state: State.PENDING } : undefined,
    );
    return updated?.record.result ?? otherwise;
  }

  async function wait(callId: string, deadline: Deadline, leftMs: number, signal: AbortSignal): Promise<Answer> {
    const over = new AbortController();
    const ends = AbortSignal.any([signal, over.signal]);
    void clock.delay(leftMs, ends).then(
      () => over.abort(new Error("the time is over")),
      () => {}, // the wait has ended
    );
    const timedOut = failure(`Tool timed out after ${deadline.timeoutMs}ms`);
    try {
      return await waiters.until(callId, async () => (await store.read(callId))?.result, ends);
    } catch (error) {
      const answer = await giveUp(callId, timedOut);
      if (signal.aborted && answer === timedOut) throw signal.reason;
      if (!ends.aborted) throw error;
      return answer;
    } finally {
      over.abort();
    }
  }

  /** A caller that comes back within the call's time waits for it again. */
  async function waitAgain(callId: string): Promise<void> {
    await store.update(callId, (record) =>
      record.state === State.PENDING ? { ...record, state: State.WAITING } : undefined,
    );
  }

  return {
    async execute(record, isAsync, deadline, signal) {
      const { callId } = record;
      if (isAsync) return success({ status: "pending", pendingToolCallId: callId });
      const createdAt = record.createdAt === undefined ? clock.now() : timestampMs(record.createdAt);
      const leftMs = Math.min(deadline.at, createdAt + deadline.timeoutMs) - clock.now();
      if (record.state === State.PENDING && leftMs > 0) await waitAgain(callId);
      return wait(callId, deadline, Math.max(0, leftMs), signal);
    },
  };
}

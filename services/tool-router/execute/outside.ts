import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ToolCallState as State, type ToolCallRecord } from "#gen/toolbus/router/v1/tool_calls_pb.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { type Answer, failure, success } from "../answer.ts";
import { openEnding } from "../ending.ts";
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
    store.announce(callId); // who waits for it elsewhere takes it back
    return updated?.record.result ?? otherwise;
  }

  /** The answer, if there is one; else the record says that somebody waits. */
  async function read(callId: string): Promise<Answer | undefined> {
    const record = await store.read(callId);
    if (record?.state !== State.PENDING) return record?.result;
    const updated = await store.update(callId, (standing) =>
      standing.state === State.PENDING ? { ...standing, state: State.WAITING } : undefined,
    );
    return updated?.record.result;
  }

  async function wait(callId: string, deadline: Deadline, leftMs: number, signal: AbortSignal): Promise<Answer> {
    using ending = openEnding(signal);
    const ends = ending.signal;
    void clock.delay(leftMs, ends).then(
      () => ending.end(new Error("the time is over")),
      () => {}, // the wait has ended
    );
    const otherwise = timedOut(deadline);
    try {
      return await waiters.until(callId, () => read(callId), ends);
    } catch (error) {
      const answer = await giveUp(callId, otherwise);
      if (signal.aborted && answer === otherwise) throw signal.reason;
      if (!ends.aborted) throw error;
      return answer;
    } finally {
      ending.end();
    }
  }

  return {
    async execute(record, isAsync, deadline, signal) {
      const { callId } = record;
      if (isAsync) return success({ status: "pending", pendingToolCallId: callId });
      const createdAt = record.createdAt === undefined ? clock.now() : timestampMs(record.createdAt);
      const leftMs = Math.min(deadline.at, createdAt + deadline.timeoutMs) - clock.now();
      if (leftMs <= 0) return giveUp(callId, timedOut(deadline));
      return wait(callId, deadline, leftMs, signal);
    },
  };
}

function timedOut({ timeoutMs }: Deadline): Answer {
  return failure(`Tool timed out after ${timeoutMs}ms`);
}

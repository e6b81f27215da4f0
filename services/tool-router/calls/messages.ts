import type { MessageInitShape } from "@bufbuild/protobuf";
import { ToolMessageState as Status, type ToolMessageSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { Failure, type FailureCode, messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import type { Spaces } from "../sessions/spaces.ts";
import type { Answer } from "./answers/answer.ts";

/** A call as its message in the space shows it. */
type Shown = Pick<
  ToolCall,
  "callId" | "spaceId" | "sessionId" | "agent" | "runId" | "tool" | "argumentsJson" | "outputSchemaJson"
>;

/** TOOL-10: the life of a visible call's message. */
export interface Messages extends AsyncDisposable {
  /** Fails when it cannot be shown: then nothing may be started. */
  show(call: Shown, status: "running" | "requires action"): Promise<void>;
  /** Shows the result, in the background, until it is shown or refused for good: the result itself waits for nobody. */
  showResult(call: Shown, answer: Answer): void;
  /** Shows the result once, or fails; what spaces refuse for good is done with. */
  showResultOnce(call: Shown, answer: Answer): Promise<void>;
  /** TOOL-9: a result for which nobody waits any more goes to the inbox, likewise once. */
  deliver(call: Shown, answer: Answer): Promise<void>;
}

const STATUSES = { running: Status.RUNNING, "requires action": Status.REQUIRES_ACTION };

/** Called once for each message that fails at the first attempt, and for each that is given up. */
type OnFault = (fault: string) => void;

/**
 * With these codes spaces refuse for good: the space does not exist any more, or is not for the principal, or the message does not
 * fit. A store or an inbox that is full has room again some day.
 */
const REFUSALS: ReadonlySet<string> = new Set<FailureCode>([
  "invalid_argument",
  "not_found",
  "failed_precondition",
  "permission_denied",
]);

const isRefused = (error: unknown) => error instanceof Failure && REFUSALS.has(error.code);

export function openMessages(spaces: Spaces, clock: Clock, onFault: OnFault): Messages {
  const closing = new AbortController();
  const underWay = new Set<Promise<void>>();

  function record(call: Shown, change: MessageInitShape<typeof ToolMessageSchema>): Promise<void> {
    const { spaceId, sessionId, agent, callId, tool, argumentsJson, runId, outputSchemaJson } = call;
    const message = { callId, tool, argumentsJson, runId, outputSchemaJson, ...change };
    return spaces.recordToolMessage({ spaceId, sessionId, agent, message });
  }

  async function retry(what: string, action: () => Promise<void>): Promise<void> {
    const onRetry = (error: unknown, attempt: number) => {
      if (attempt === 1) onFault(`${what} waits: ${messageFromUnknown(error)}`);
    };
    const options = { initialMs: 50, maxMs: 2_000, clock, closing: closing.signal, onRetry };
    await retryWhile((error) => !isRefused(error), action, options).catch((error: unknown) => {
      onFault(`${what} ${isRefused(error) ? "is refused" : "is lost"}: ${messageFromUnknown(error)}`);
    });
  }

  async function once(what: string, action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      if (!isRefused(error)) throw error;
      onFault(`${what} is refused: ${messageFromUnknown(error)}`);
    }
  }

  function recordResult(call: Shown, answer: Answer): Promise<void> {
    return record(call, { state: answer.isError ? Status.ERROR : Status.COMPLETE, result: answer });
  }

  return {
    show: (call, status) => record(call, { state: STATUSES[status] }),
    showResult(call, answer) {
      if (call.spaceId === "") return;
      const shown = retry(`the message of call ${call.callId}`, () => recordResult(call, answer));
      const task = shown.finally(() => underWay.delete(task));
      underWay.add(task);
    },
    async showResultOnce(call, answer) {
      if (call.spaceId !== "") await once(`the message of call ${call.callId}`, () => recordResult(call, answer));
    },
    deliver({ callId, sessionId, agent, tool }, result) {
      const event = { case: "toolResult", value: { callId, tool, result } } as const;
      const request = { event: { eventId: `tr:${callId}`, sessionId, agent, event } };
      return once(`the inbox event of call ${callId}`, () => spaces.deliverEvent(request));
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await Promise.all(underWay);
    },
  };
}

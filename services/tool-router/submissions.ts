import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  ToolCallState as State,
  type SubmitToolResultRequest,
  type ToolCallRecord,
} from "#gen/toolbus/router/v1/tool_calls_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { type Answer, type Answers, failure, successJson } from "./answer.ts";
import type { Messages } from "./messages.ts";
import type { CallStore } from "./record.ts";
import type { Validator } from "./validate.ts";

export interface Submissions {
  /** TOOL-7: exactly one submission wins; the others are told why theirs did not. */
  submit(request: SubmitToolResultRequest): Promise<ToolCallRecord>;
}

export interface SubmissionParts {
  store: CallStore;
  messages: Messages;
  validator: Validator;
  clock: Clock;
  answers: Pick<Answers, "bound" | "recorded">;
}

export function createSubmissions(parts: SubmissionParts): Submissions {
  const { store, messages, validator, clock, answers } = parts;

  function answerFrom(request: SubmitToolResultRequest, record: ToolCallRecord): Answer {
    if (request.error !== "") return failure(request.error);
    const validation = validator.parseResult(record.outputSchemaJson, request.resultJson || "null");
    if (validation.kind === "invalid") {
      refuse("invalid_argument", `the result of call ${record.callId} is refused: ${validation.message}`, {
        reason: "RESULT_INVALID",
      });
    }
    return successJson(request.resultJson || "null");
  }

  return {
    async submit(request) {
      const { callId, runId } = request;
      const found = (await store.read(callId)) ?? refuseUnknown(callId);
      if (runId !== "" && found.runId !== runId) refuseUnknown(callId, runId);
      refuseUnlessOpen(found, clock.now());
      const result = await answers.recorded(await answers.bound(answerFrom(request, found)));
      const updated = await store.update(callId, (record) => {
        if (!isOpen(record)) return undefined;
        return { ...record, state: State.RESOLVED, result, resolvedLate: record.state === State.PENDING };
      });
      const { record, hasChanged, before } = updated ?? refuseUnknown(callId);
      if (!hasChanged) refuseUnlessOpen(record, clock.now());
      store.announce(callId);
      messages.showResult(record, result);
      if (before.state === State.PENDING) messages.deliver(record, result);
      return record;
    },
  };
}

function isOpen(record: ToolCallRecord): boolean {
  return record.state === State.WAITING || record.state === State.PENDING;
}

function refuseUnlessOpen(record: ToolCallRecord, now: number): void {
  const { callId, state, expiresAt } = record;
  const hasExpired = state === State.EXPIRED || (expiresAt !== undefined && timestampMs(expiresAt) <= now);
  const metadata = { call_id: callId };
  if (state === State.RESOLVED) {
    refuse("failed_precondition", `call ${callId} is already resolved`, { reason: "CALL_ALREADY_RESOLVED", metadata });
  }
  if (hasExpired) refuse("failed_precondition", `call ${callId} has expired`, { reason: "CALL_EXPIRED", metadata });
  if (!isOpen(record)) {
    refuse("failed_precondition", `call ${callId} is not answered from outside`, { reason: "CALL_NOT_OPEN", metadata });
  }
}

function refuseUnknown(callId: string, runId?: string): never {
  const ofRun = runId === undefined ? "" : ` of run ${runId}`;
  return refuse("not_found", `there is no call ${callId}${ofRun}`, {
    reason: "CALL_UNKNOWN",
    metadata: { call_id: callId },
  });
}

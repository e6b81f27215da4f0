import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { SubmitToolResultRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import { isForPeople } from "#runtime/content/questions.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { isOwner } from "#runtime/failure/session-owner.ts";
import { isRepetition, type Submission, submissionFrom, wonBy } from "#runtime/results/submission.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import type { Validator } from "#runtime/schema/json-schema/validator.ts";
import { type Answer, type Answers, failure, successJson } from "../answers/answer.ts";
import { auditedFacts, type CallRecord } from "../records/record/call-record.ts";
import { hasExpired, isExternal, isOpen, isTombstone } from "../records/record/states.ts";
import type { RecordingParts } from "../records/store.ts";
import type { Presence } from "../watchers/ports.ts";
import type { Answerers } from "./answerers.ts";
import { ruleOf } from "./call-keys.ts";
import { refuseCall, refuseUnknown, refuseUnlessOpen } from "./open.ts";

export type Submissions = ReturnType<typeof createSubmissions>;

export interface Submitter {
  caller: Caller;
  principal: string;
  signal: AbortSignal;
}

export interface SubmissionParts extends RecordingParts {
  validator: Validator;
  answers: Pick<Answers, "bound">;
  answerers: Pick<Answerers, "requireSubmitter">;
  presence: Pick<Presence, "isWatchedBy">;
  /** Whether the principal may have calls of the external tool. */
  mayWatch: (principal: string, tool: string) => boolean;
}

export function createSubmissions(parts: SubmissionParts) {
  const { store, validator, clock, answers, answerers, presence, mayWatch, audit } = parts;

  async function answerFrom({ outcome }: Submission, record: CallRecord, by: Submitter): Promise<Answer> {
    if (outcome.case === "error") return failure(outcome.value);
    const fault = await validator.faultOfResult(record.outputSchemaJson, outcome.value, by.principal, by.signal);
    if (fault !== undefined) {
      refuse("invalid_argument", `the result of call ${record.callId} is refused: ${fault}`, {
        reason: "RESULT_INVALID",
        metadata: { call_id: record.callId },
      });
    }
    return successJson(outcome.value);
  }

  async function requireWatcher(record: CallRecord, { caller, principal, signal }: Submitter): Promise<void> {
    if (isStranger(record, principal)) refuseStranger(record);
    if (!isUntaken(record) || isOwner(record.principal, caller)) return;
    const isWatcher = mayWatch(principal, record.tool) && (await presence.isWatchedBy(principal, record.tool, signal));
    if (!isWatcher) refuseUntaken(record);
  }

  /** The call's own record may have replaced a tombstone meanwhile, or another watcher may have taken the call. */
  async function find(callId: string, principal: string): Promise<CallRecord> {
    const cached = await store.readCached(callId);
    const isDoubtful = cached && (isTombstone(cached) || isStranger(cached, principal));
    const found = isDoubtful ? await store.read(callId) : cached;
    return found ?? refuseUnknown(callId);
  }

  return {
    /**
     * TOOL-7: exactly one submission wins, also when it is repeated; the others are refused with the reason. The principal that
     * called may answer, and the one whose watcher has acknowledged the call; before that, each that watches for its tool.
     */
    async submit(request: SubmitToolResultRequest, by: Submitter): Promise<CallRecord> {
      const { caller, principal } = by;
      const { callId, runId } = request;
      const found = await find(callId, principal);
      if (runId !== "" && found.runId !== runId) refuseUnknown(callId, runId);
      await answerers.requireSubmitter(found, caller);
      const submission = submissionFrom(request, callId);
      if (hasWon(found, submission, by)) return found;
      if (isExternal(found) && !isOpen(found)) store.announce(callId); // the watcher that still has it may not know
      refuseUnlessOpen(found, clock.now());
      await requireWatcher(found, by);
      const answer = await answerFrom(submission, found, by);
      const result = await answers.bound(answer, found.sessionId);
      const won = wonBy(submission);
      const updated = await store.update(callId, (record) => {
        if (!isOpen(record) || hasExpired(record, clock.now()) || isStranger(record, principal)) return undefined;
        const resolvedLate = record.state === State.PENDING;
        const { submissionId, sha256: submissionSha256 } = won;
        const answeredBy = isUntaken(record) && !isOwner(record.principal, caller) && { watcherPrincipal: principal };
        const how = { resolvedLate, submissionId, submissionSha256, ...answeredBy };
        return { ...record, state: State.RESOLVED, result, ...how };
      });
      const { record, hasChanged } = updated ?? refuseUnknown(callId);
      if (!hasChanged) {
        if (hasWon(record, submission, by)) return record;
        refuseUnlessOpen(record, clock.now());
        refuseStranger(record);
      }
      store.announce(callId);
      if (isForPeople(record)) audit(answeredEvent(record, caller), record.principal);
      return record;
    },
  };
}

/** Which key answered, and on whose behalf. Through a space, whoever answered is named there. */
function answeredEvent(record: CallRecord, { principal, callKey }: Caller): Parameters<Audit>[0] {
  const by = principal === undefined ? `in space ${record.spaceId}` : `by ${principal}`;
  const message = callKey ? `answered on behalf of ${principal} with call key ${callKey.id}` : `answered ${by}`;
  const rule = callKey ? ruleOf(callKey) : "";
  return { kind: AuditKind.ANSWERED, ...auditedFacts(record), rule, message, principal: principal ?? "" };
}

/** Whether this very submission resolved the call, and its sender may know. */
function hasWon(record: CallRecord, submission: Submission, { caller, principal }: Submitter): boolean {
  const { callId, submissionId, submissionSha256: sha256, watcherPrincipal } = record;
  const mayKnow = !isExternal(record) || isOwner(record.principal, caller) || principal === watcherPrincipal;
  return mayKnow && isRepetition({ submissionId, sha256 }, submission, callId);
}

/** Whether services may answer it that watch for it, since none has taken it. */
function isUntaken(record: CallRecord): boolean {
  return isExternal(record) && !record.taken;
}

function isStranger({ taken, watcherPrincipal, principal: owner }: CallRecord, principal: string): boolean {
  return taken && principal !== watcherPrincipal && principal !== owner;
}

function refuseStranger({ callId }: CallRecord): never {
  const why = "has been taken by a watcher of somebody else";
  return refuseCall("permission_denied", callId, { reason: "CALL_TAKEN", why });
}

function refuseUntaken({ callId, tool }: CallRecord): never {
  const why = `was not taken: acknowledge its delivery first, or answer while you watch for calls of ${tool}`;
  return refuseCall("permission_denied", callId, { reason: "CALL_NOT_TAKEN", why });
}

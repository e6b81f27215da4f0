import type { KeyObject } from "node:crypto";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { Quota } from "#runtime/bus/quota/quota.ts";
import type { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Spaces } from "../../../sessions/spaces.ts";
import { failure } from "../../answers/answer.ts";
import { whereFull } from "../../answers/where-full.ts";
import type { Messages } from "../../messages.ts";
import { auditedFacts, type CallRecord } from "../../records/record/call-record.ts";
import { expiryMs, isOpen } from "../../records/record/states.ts";
import type { RecordingParts } from "../../records/store.ts";
import { openWait } from "../limits/wait.ts";
import {
  type AskingCall,
  faultOfQuestion,
  isAnsweredByCaller,
  isQuestionOf,
  questionId,
  questionRecord,
} from "./question.ts";

export interface QuestionRecordsParts extends RecordingParts {
  /** By which all routers give questions their ids. */
  key: KeyObject;
  /** Who is over its quota of what all records take. */
  quota?: Pick<Quota, "requireRoom">;
  /** Of changes of recorded calls, by the call. */
  waiters: KeyedListeners;
  messages: Pick<Messages, "show">;
  spaces: Pick<Spaces, "activeSpace">;
  /** How long a person may take. */
  questionMs: number;
}

const TAKEN = "the id of its question is another call's";
const NOBODY = "nobody can be asked: the agent has no active space";

/** The life of one question, from its record to its end. The rules are those of questions.ts. */
export function createQuestionRecords(parts: QuestionRecordsParts) {
  const { key, store, quota, waiters, messages, spaces, audit, clock, questionMs } = parts;

  /** Asks, unless that is done (questions-1); gives the question's record, or why nobody is asked. */
  async function open(call: AskingCall, asked: Pick<Parameters<typeof questionRecord>[1], "request" | "elicitation">) {
    const id = questionId(key, call, asked.request);
    const read = async () => {
      const standing = await store.read(id);
      return standing && (isQuestionOf(standing, call) ? standing : TAKEN);
    };
    const standing = await read(); // questions-1
    if (standing !== undefined) return standing;
    const spaceId = await spaces.activeSpace(call.scope.sessionId, call.scope.agent);
    if (spaceId === "" && !isAnsweredByCaller(call, asked.elicitation)) return NOBODY;
    const now = clock.now();
    const expiresAt = Math.min(now + questionMs, call.runDeadline ?? Number.POSITIVE_INFINITY);
    const record = questionRecord(call, { ...asked, id, spaceId }, { now, expiresAt });
    const fault = faultOfQuestion(record);
    if (fault !== undefined) return `a person cannot be shown it: ${fault}`;
    const create = async () => {
      quota?.requireRoom(record.principal, record.argumentsJson.length + record.outputSchemaJson.length);
      return store.create(record);
    };
    const isCreated = await create().catch(whereFull(({ message }) => `its question finds no room: ${message}`));
    if (typeof isCreated === "string") return isCreated;
    if (!isCreated) return (await read()) ?? record;
    if (spaceId === "") return record;
    try {
      await messages.show(record, "running");
      await messages.show(record, "requires action");
    } catch (error) {
      const text = `it could not be shown in space ${spaceId}: ${messageFromUnknown(error)}`;
      await end(record.callId, State.CANCELED, text);
      return text;
    }
    return record;
  }

  /** Until it is answered, withdrawn, or its time is over; gives the record as it stands then. */
  async function wait(record: CallRecord, signal: AbortSignal): Promise<CallRecord> {
    const { callId } = record;
    const leftMs = Math.max(0, (expiryMs(record) ?? 0) - clock.now());
    using waiting = openWait(clock, leftMs, signal);
    const ended = async () => {
      const standing = await store.readCached(callId);
      return standing === undefined || isOpen(standing) ? undefined : standing;
    };
    try {
      return await waiters.until(callId, ended, waiting.signal);
    } catch (error) {
      if (!waiting.signal.aborted) throw error;
      const [state, text] = signal.aborted
        ? ([State.CANCELED, "the question was withdrawn: nobody waits for its answer any more"] as const)
        : ([State.EXPIRED, `nobody answered within ${leftMs} ms`] as const);
      const standing = (await end(callId, state, text)) ?? record;
      if (signal.aborted) throw signal.reason;
      return standing;
    }
  }

  /** questions-2. Its result is shown with the work that is due on the record. */
  async function end(callId: string, state: State, text: string): Promise<CallRecord | undefined> {
    const updated = await store.update(callId, (record) =>
      isOpen(record) ? { ...record, state, result: failure(text) } : undefined,
    );
    if (!updated?.hasChanged) return updated?.record;
    store.announce(callId);
    const kind = state === State.EXPIRED ? AuditKind.EXPIRED : AuditKind.CANCELED;
    audit({ kind, message: text, ...auditedFacts(updated.record) }, updated.record.principal);
    return updated.record;
  }

  return { open, wait };
}

import type { KeyObject } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import {
  type Elicitation,
  type InputRequest,
  type InputRequired,
  type InputResponses,
  InputResponsesSchema,
} from "#gen/toolbus/provider/v1/input_pb.ts";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { Quota } from "#runtime/bus/quota/quota.ts";
import type { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { Failure, messageFromUnknown } from "#runtime/failure/failure.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Spaces } from "../../../sessions/spaces.ts";
import { failure } from "../../answers/answer.ts";
import { whereFull } from "../../answers/where-full.ts";
import type { Messages } from "../../messages.ts";
import { auditedFacts, type CallRecord } from "../../records/record/call-record.ts";
import { expiryMs, isOpen } from "../../records/record/states.ts";
import type { RecordingParts } from "../../records/store.ts";
import { openWait } from "../limits/wait.ts";
import type { ProviderStream, Told } from "./provider-stream.ts";
import {
  type AskingCall,
  answerOf,
  faultOfQuestion,
  isAnsweredByCaller,
  isQuestionOf,
  questionId,
  questionRecord,
} from "./question.ts";

/*
 * What a tool asks while it is called (MCP's elicitation) becomes a question: a recorded call that people answer, shown in the
 * active space of the agent like a call of a tool that a space answers. Who may answer such a call may answer the question. Whoever
 * calls may have questions answered, too: then it is told of them, and needs no space.
 *
 * questions-1  A question has the same id whoever asks it, so a call that goes on elsewhere finds its question, answered or not.
 * questions-2  A question that nobody waits for is withdrawn: the call was canceled, its server let go of it, or the time to answer is
 *     over. If the router dies that waited, the question expires by its record.
 * questions-3  A call that its provider holds open (`live`) goes on with the answer on a further stream; the end of the first one ends the
 *     question. If its router or provider dies, its outcome is unknown. For any other call the record holds what it waits for, and any
 *     router goes on with it (`suspended` in records.ts).
 * questions-4  While a person is asked, the call's time stands still. The question has its own, and the run's end caps it.
 */

export interface QuestionsParts extends RecordingParts {
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

export interface Questions {
  /** Asks whatever is required, at once; a stream that is held open meanwhile is heard (questions-3). */
  answer(call: AskingCall, required: InputRequired, held: Held, signal: AbortSignal): Promise<Answered>;
}

interface Opened {
  readonly request: InputRequest;
  readonly elicitation: Elicitation | undefined;
  /** The question's record, or why nobody is asked; undefined for what is no question. */
  readonly opened: Promise<CallRecord | string> | undefined;
}

type Held = Pick<ProviderStream, "next"> | undefined;
type Answered = Told | { kind: "answered"; responses: InputResponses };

const TAKEN = "the id of its question is another call's";
const NOBODY = "nobody can be asked: the agent has no active space";

export function createQuestions(parts: QuestionsParts): Questions {
  const { key, store, quota, waiters, messages, spaces, audit, clock, questionMs } = parts;

  async function resultOf(call: AskingCall, { request, opened }: Opened, signal: AbortSignal): Promise<string> {
    const { id, request: wanted } = request;
    if (wanted.case === "sampling") return call.sample({ id, ...wanted.value }, signal);
    const asked = await opened;
    if (typeof asked === "object") return answerOf(await wait(asked, signal));
    call.note(
      `${call.tool} asks for something, and ${asked ?? "this release cannot give it"}; it was told so (cancel)`,
    );
    return JSON.stringify({ action: "cancel" });
  }

  /** All at once, so that whoever calls is told of all together. */
  function openAll(call: AskingCall, requests: readonly InputRequest[]): Opened[] {
    const all = requests.map((request): Opened => {
      const elicitation = request.request.case === "elicitation" ? request.request.value : undefined;
      return { request, elicitation, opened: elicitation && open(call, { request, elicitation }) };
    });
    const tell = async () => {
      const asked = all.map(async ({ elicitation, opened }) => {
        const record = await opened;
        const isAsked = typeof record === "object" && isOpen(record);
        return isAsked && elicitation && isAnsweredByCaller(call, elicitation) ? [record] : [];
      });
      const questions = (await Promise.all(asked)).flat();
      if (questions.length > 0) call.tellAsked(questions);
    };
    void tell().catch(() => {}); // whoever waits for the answers is told
    return all;
  }

  /** The question's record, or why nobody is asked. */
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

  return {
    async answer(call, required, held, signal) {
      using ending = openEnding(signal);
      const { requests, state } = required;
      const asking = Promise.all(
        openAll(call, requests).map(async (opened) => ({
          id: opened.request.id,
          resultJson: await resultOf(call, opened, ending.signal),
        })),
      ).then((responses) => ({
        kind: "answered" as const,
        responses: create(InputResponsesSchema, { responses, state }),
      }));
      const released = held?.next();
      released?.catch(() => {}); // after the answers, it is heard on another stream
      try {
        return await (released === undefined ? asking : Promise.race([asking, released]));
      } finally {
        ending.end(new Failure("canceled", "what was asked for is asked for no more", { reason: "CANCELED" }));
        await asking.catch(() => {}); // withdrawn
      }
    },
  };
}

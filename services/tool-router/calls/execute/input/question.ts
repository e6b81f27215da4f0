import { createHmac, type KeyObject } from "node:crypto";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Elicitation, InputRequest } from "#gen/toolbus/provider/v1/input_pb.ts";
import type { Scope } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { faultOfHandedArguments, recordedSchema } from "../../answers/record-size.ts";
import { type CallRecord, callRecord } from "../../records/record/call-record.ts";

/** Asks the agent's model for what a server wants to have written (MCP's sampling). */
export type Sample = (request: { id: string; paramsJson: string }, signal: AbortSignal) => Promise<string>;

/** By this name a space and a list of calls show a question. No tool has it. */
const QUESTION_TOOL = "elicitation/create";

/** A call on whose behalf something is asked. */
export interface AskingCall {
  readonly callId: string;
  /** The tool's reference. */
  readonly tool: string;
  readonly scope: Scope;
  readonly runDeadline: number | undefined;
  /** What whoever calls has answered, beside people in the space. */
  readonly answers: CallersAnswers;
  /** Tells whoever calls what is to be answered. */
  readonly tellAsked: (questions: CallRecord[]) => void;
  /** Tells who waits for the call what became of its questions. */
  readonly note: (text: string) => void;
  /** Has a text written by the agent's model; the answer as JSON text. */
  readonly sample: Sample;
}

export interface CallersAnswers {
  readonly forms: boolean;
  readonly urls: boolean;
}

/** Whether the one who calls has it answered. */
export function isAnsweredByCaller({ answers }: Pick<AskingCall, "answers">, { url }: Elicitation): boolean {
  return url === "" ? answers.forms : answers.urls;
}

/**
 * Equal for the same question of the same call, so that it is asked once, whoever goes on with the call. By a key of the routers: under
 * an id that others can compute, they could answer before.
 */
export function questionId(
  key: KeyObject,
  { callId, scope }: Pick<AskingCall, "callId" | "scope">,
  { id, request }: InputRequest,
): string {
  const value = request.case === "elicitation" ? request.value : undefined;
  const text = JSON.stringify([scope.sessionId, callId, id, value?.message, value?.requestedSchemaJson, value?.url]);
  return `ask-${createHmac("sha256", key).update(text).digest("base64url")}`;
}

/** A question is a call that people answer, like one of a tool that a space answers. */
export function questionRecord(
  call: AskingCall,
  asked: { id: string; request: InputRequest; elicitation: Elicitation; spaceId: string },
  times: { now: number; expiresAt: number },
): CallRecord {
  const { sessionId, runId, agent, principal } = call.scope;
  const { message, url, requestedSchemaJson } = asked.elicitation;
  const isForm = url === "";
  const requestedSchema: unknown = isForm ? JSON.parse(requestedSchemaJson || "{}") : undefined;
  const content = isForm ? { requestedSchema } : { url };
  return callRecord({
    ...{ sessionId, runId, agent, principal },
    callId: asked.id,
    tool: QUESTION_TOOL,
    calledAs: QUESTION_TOOL,
    argumentsJson: JSON.stringify({ tool: call.tool, message, mode: isForm ? "form" : "url", ...content }),
    executionType: ExecutionType.SPACE,
    outputSchemaJson: JSON.stringify(answerSchema(isForm ? requestedSchema : undefined)),
    spaceId: asked.spaceId,
    effect: Effect.AT_MOST_ONCE,
    state: State.WAITING,
    createTime: timestampFromMs(times.now),
    expireTime: timestampFromMs(Math.ceil(times.expiresAt)),
    question: { callId: call.callId, name: asked.request.id },
  });
}

/** Whether the record is the call's question, and no call that somebody else made under its id. */
export function isQuestionOf({ question, principal, sessionId }: CallRecord, { callId, scope }: AskingCall): boolean {
  return question?.callId === callId && principal === scope.principal && sessionId === scope.sessionId;
}

/** Why the question cannot be put to a person whole, or its answer not be checked; undefined when it can. */
export function faultOfQuestion({ argumentsJson, outputSchemaJson }: CallRecord): string | undefined {
  if (recordedSchema(outputSchemaJson) === "") return "its form is too large";
  return faultOfHandedArguments(argumentsJson);
}

/** What answers a form or a URL has. What the form has a default for may be left out. */
function answerSchema(form: unknown): object {
  const action = { enum: ["accept", "decline", "cancel"] };
  const answer = { type: "object", properties: { action }, required: ["action"] };
  if (form === undefined) return answer;
  const isNotAccepted = { properties: { action: { enum: ["decline", "cancel"] } } };
  const fits = { properties: { content: withoutDefaulted(form) }, required: ["content"] };
  return { ...answer, if: isNotAccepted, else: fits };
}

function withoutDefaulted(form: unknown): unknown {
  if (!isObject(form) || !Array.isArray(form.required) || !isObject(form.properties)) return form;
  const { properties } = form;
  const hasDefault = (name: unknown) => {
    const property = typeof name === "string" ? properties[name] : undefined;
    return isObject(property) && "default" in property;
  };
  return { ...form, required: form.required.filter((name) => !hasDefault(name)) };
}

/** The answer as MCP has it; what a person leaves out of a form has the form's default. Who answers with an error declines. */
export function answerOf({ state, result, argumentsJson }: CallRecord): string {
  const isAnswered = state === State.RESOLVED && result?.isError === false && result.storedReference === "";
  if (!isAnswered) return JSON.stringify({ action: state === State.RESOLVED ? "decline" : "cancel" });
  const { action, content }: { action: string; content?: object } = JSON.parse(result.outputJson);
  const asked: { requestedSchema?: unknown } = JSON.parse(argumentsJson);
  if (action !== "accept" || asked.requestedSchema === undefined) return JSON.stringify({ action });
  return JSON.stringify({ action, content: { ...defaultsOf(asked.requestedSchema), ...content } });
}

function defaultsOf(form: unknown): object {
  if (!isObject(form) || !isObject(form.properties)) return {};
  const defaults = Object.entries(form.properties).flatMap(([name, property]) =>
    isObject(property) && property.default !== undefined ? [[name, property.default]] : [],
  );
  return Object.fromEntries(defaults);
}

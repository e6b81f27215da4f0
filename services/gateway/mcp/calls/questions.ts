import type { CallOptions, Client } from "@connectrpc/connect";
import type { ElicitRequestParams, InputRequiredResult, ServerContext } from "@modelcontextprotocol/server";
import { type ToolCall, ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { fieldsOf, isObject } from "#runtime/schema/json-object.ts";
import { delay } from "#runtime/time/delay.ts";

/*
 * What a call asks of people, for clients that can ask theirs (MCP's elicitation): questions of MCP servers, and calls that a space
 * answers. Each is a recorded call, and a client answers it by the RPC by which everybody does.
 */

/** What a client can ask its people. */
export interface Answers {
  readonly forms: boolean;
  readonly urls: boolean;
}

/** How what a call asks of people is put to the one who calls. */
export interface Asking {
  readonly answers: Answers;
  /** The call with which a client goes on; undefined for a new one. */
  readonly goesOn?: (context: ServerContext) => string | undefined;
  /** What it gives answers the client's request, and the call goes on without the client. */
  readonly ask: (questions: readonly ToolCall[], asked: AskedBy) => Promise<InputRequiredResult | undefined>;
  /** Whether the client comes back to a call whose stream it has lost. */
  readonly isResumed?: boolean;
  /** Refuses what is no state of this server. */
  readonly verifyState?: (state: string, context: ServerContext) => Promise<unknown>;
}

export interface AskedBy {
  readonly callId: string;
  readonly context: ServerContext;
  /** Whether the client knows the call as a task. */
  readonly isTask?: boolean;
}

/** As a client declares it. Without a mode it is forms. */
export function answersFrom(capabilities: unknown): Answers {
  const declared = fieldsOf(capabilities).elicitation;
  if (!isObject(declared)) return { forms: false, urls: false };
  const urls = isObject(declared.url);
  return { forms: isObject(declared.form) || !urls, urls };
}

/** As a client is asked; undefined where it cannot be. */
export function elicitationOf(call: ToolCall, { forms, urls }: Answers): ElicitRequestParams | undefined {
  if (call.question === undefined) return forms ? formOfCall(call) : undefined;
  const { message, url, requestedSchema } = fieldsOf(JSON.parse(call.argumentsJson || "{}"));
  if (typeof url === "string")
    return urls ? { mode: "url", message: String(message), url, elicitationId: call.callId } : undefined;
  return forms ? { message: String(message), requestedSchema: schemaOfForm(requestedSchema) } : undefined;
}

type Form = Extract<ElicitRequestParams, { requestedSchema: unknown }>;

function schemaOfForm(schema: unknown): Form["requestedSchema"] {
  const { properties = {}, ...more } = fieldsOf(schema);
  return { ...more, type: "object", properties } as Form["requestedSchema"];
}

/** A call that a space answers is a form where its result is one: an object of plain values. */
function formOfCall({ tool, argumentsJson, outputSchemaJson }: ToolCall): Form | undefined {
  const schema: unknown = outputSchemaJson === "" ? undefined : JSON.parse(outputSchemaJson);
  if (!isObject(schema) || schema.type !== "object" || !isObject(schema.properties)) return undefined;
  if (!Object.values(schema.properties).every(isPlain)) return undefined;
  return { message: `${tool} ${argumentsJson || "{}"}`, requestedSchema: schemaOfForm(schema) };
}

function isPlain(property: unknown): boolean {
  return isObject(property) && ["string", "number", "integer", "boolean"].includes(String(property.type));
}

export type Calls = Pick<Client<typeof ToolCallService>, "submitToolResult" | "listToolCalls">;

/** What a client answers, as it came; whatever is no answer is a cancellation. */
export interface Elicited {
  readonly callId: string;
  readonly result: unknown;
}

/** Gives why it is not answered now: others have answered it, or what is said does not fit (`invalid_argument`), and it stays open. */
export async function answer(calls: Calls, { callId, result }: Elicited, options: CallOptions) {
  const submitted = { callId, outcome: outcomeOf(callId, result), submissionId: "mcp" };
  const failure = await calls.submitToolResult(submitted, options).then(() => undefined, failureFromConnectError);
  if (failure && !LEFT.has(failure.code)) throw failure;
  return failure;
}

const LEFT = new Set<string>(["invalid_argument", "failed_precondition", "already_exists", "not_found"]);

const isQuestion = (callId: string) => callId.startsWith("ask-");

function outcomeOf(callId: string, result: unknown) {
  const { action, content } = fieldsOf(result);
  const isAccepted = action === "accept";
  const said = action === "decline" ? "decline" : "cancel";
  if (isQuestion(callId)) {
    const value = JSON.stringify(isAccepted ? { action, content } : { action: said });
    return { case: "resultJson", value } as const;
  }
  if (isAccepted) return { case: "resultJson", value: JSON.stringify(content ?? {}) } as const;
  return { case: "error", value: `the person answered with ${said}` } as const;
}

type WaitingCall = Pick<ToolCall, "sessionId" | "callId">;

const FOLLOW_MS = 1_000;

/** What a call asks that is not answered yet, whoever executes it. */
export async function waitingFor(
  calls: Calls,
  { sessionId, callId }: WaitingCall,
  options: CallOptions,
): Promise<ToolCall[]> {
  return (await allWaiting(calls, sessionId, options)).filter((asked) => isAskedBy(asked, callId));
}

/** All that waits in a session, or, without one, in all of the principal's. */
export async function allWaiting(calls: Calls, sessionId: string, options: CallOptions): Promise<ToolCall[]> {
  const states = [ToolCallState.WAITING];
  const list = (pageToken: string) => calls.listToolCalls({ sessionId, states, pageSize: 1_000, pageToken }, options);
  return (await allPages(list)).flatMap((page) => page.calls);
}

export function isAskedBy(asked: ToolCall, callId: string): boolean {
  return asked.question?.callId === callId || (asked.callId === callId && asked.executionType === ExecutionType.SPACE);
}

/** The same, now and from then on. */
export async function* followQuestions(
  calls: Calls,
  call: WaitingCall,
  options: CallOptions & { readonly signal: AbortSignal },
): AsyncGenerator<ToolCall[]> {
  const told = new Set<string>();
  while (!options.signal.aborted) {
    const found = await waitingFor(calls, call, options).catch(() => []); // asked again
    const asked = found.filter(({ callId }) => !told.has(callId));
    for (const call of asked) told.add(call.callId);
    if (asked.length > 0) yield asked;
    await delay(FOLLOW_MS, options.signal).catch(() => {}); // the call has ended
  }
}

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type {
  CallToolResult,
  ElicitRequestURLParams,
  InputRequiredResult,
  InputResponse,
  ListRootsResult,
} from "@modelcontextprotocol/client";
import {
  InputKind,
  type InputRequestSchema,
  type InputRequired,
  InputRequiredSchema,
  type InputResponses,
} from "#gen/toolbus/provider/v1/input_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import type { Answers } from "../../link/opening/calls.ts";
import { elicitationFrom } from "./elicitation.ts";
import { samplingFrom } from "./sampling.ts";

/** What the bridge gives along with what a call asks for, and is given back with the answers. */
export interface InputState {
  /** Of a call that its server holds open: nobody else can go on with it. */
  live?: string;
  /** The call that it is for: its id, session and principal. With the state of another one no call goes on. */
  call?: readonly string[];
  /** What the server wants to have again with the answers (2026-07-28). */
  requestState?: string;
  /** What nobody has to be asked for. */
  known?: Record<string, InputResponse>;
  /** The server answers when it is called again, and is told nothing (URL elicitation of 2025-11-25). */
  isRepeated?: boolean;
  /** The server asked for a token: the call is tried again, whatever was answered, and asks no second time. */
  isLogin?: boolean;
}

export function stateFrom(state: InputState): Uint8Array {
  return Buffer.from(JSON.stringify(state));
}

export function parseState(state: Uint8Array): InputState {
  return JSON.parse(Buffer.from(state).toString()) as InputState; // the bridge's own
}

interface AskingCall {
  readonly identity: readonly string[];
  readonly accepted: readonly InputKind[];
  readonly roots: ListRootsResult;
}

/* As the SDK's own guards, which would load it with the service: it takes 10 MB. */

export function isInputRequired(result: CallToolResult | InputRequiredResult): result is InputRequiredResult {
  return result.resultType === "input_required";
}

export function urlsIn(error: unknown): ElicitRequestURLParams[] | undefined {
  const isOfUrls = error instanceof Error && "code" in error && error.code === URL_ELICITATION_REQUIRED;
  return isOfUrls && "elicitations" in error ? (error.elicitations as ElicitRequestURLParams[]) : undefined;
}

const URL_ELICITATION_REQUIRED = -32_042;

/** What an `input_required` result asks for. Throws when it is nothing that was offered to the server. */
export function inputRequiredFrom(result: InputRequiredResult, call: AskingCall): InputRequired {
  const { identity, accepted, roots } = call;
  const { inputRequests = {}, requestState } = result;
  const isKnown = ([, { method }]: [string, { method: string }]) => method === "roots/list" && roots.roots.length > 0;
  const known = Object.fromEntries(
    Object.entries(inputRequests)
      .filter(isKnown)
      .map(([id]) => [id, roots]),
  );
  const asked = Object.entries(inputRequests).filter((entry) => !isKnown(entry));
  if (accepted.length === 0) return refuseKind("input");
  const requests = asked.map(([id, request]): MessageInitShape<typeof InputRequestSchema> => {
    if (request.method === "sampling/createMessage" && accepted.includes(InputKind.SAMPLING))
      return { id, request: { case: "sampling", value: samplingFrom(request.params) } };
    const asked = request.method === "elicitation/create" ? elicitationFrom(request.params) : undefined;
    if (asked === undefined || !accepted.includes(asked.kind)) return refuseKind(request.method);
    return { id, request: { case: "elicitation", value: asked.elicitation } };
  });
  const state = stateFrom({ call: identity, known, ...(requestState !== undefined && { requestState }) });
  return create(InputRequiredSchema, { requests, state });
}

/** What a server of 2025-11-25 wants to have done in a browser before it is called again. */
export function inputRequiredByUrls(elicitations: ElicitRequestURLParams[], { identity, accepted }: AskingCall) {
  const requests = elicitations.map((params): MessageInitShape<typeof InputRequestSchema> => {
    const { kind, elicitation } = elicitationFrom(params);
    if (!accepted.includes(kind)) return refuseKind("elicitation/create");
    return { id: params.elicitationId, request: { case: "elicitation", value: elicitation } };
  });
  return create(InputRequiredSchema, { requests, state: stateFrom({ call: identity, isRepeated: true }) });
}

function refuseKind(method: string): never {
  return refuse("invalid_argument", `the tool asks for what this client does not offer: ${method}`, {
    reason: "INVALID_REQUEST",
  });
}

/** The answers as the server gets them; undefined where it is only called again. */
export function answersFrom(given: InputResponses, identity: readonly string[]): Answers | undefined {
  const { call, requestState, known, isRepeated, isLogin } = parseState(given.state);
  if (JSON.stringify(call) !== JSON.stringify(identity))
    refuse("permission_denied", "these are answers to another call", { reason: "INVALID_REQUEST" });
  if (isLogin) return undefined;
  const answers = given.responses.map(({ id, resultJson }) => [id, JSON.parse(resultJson) as InputResponse] as const);
  if (!isRepeated) {
    return {
      inputResponses: { ...known, ...Object.fromEntries(answers) },
      ...(requestState !== undefined && { requestState }),
    };
  }
  const isAccepted = answers.every(([, answer]) => isObject(answer) && answer.action === "accept");
  return isAccepted ? undefined : refuseDeclined();
}

function refuseDeclined(): never {
  return refuse("permission_denied", "a person did not agree to open what the server asked for", {
    reason: "INVALID_REQUEST",
  });
}

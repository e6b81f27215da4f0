import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import {
  ToolCallService,
  type WatchToolCallsRequest,
  WatchToolCallsRequestSchema,
  type WatchToolCallsResponse,
} from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { violationsFrom } from "#runtime/failure/error-detail.ts";
import { refuse, refuseRequest } from "#runtime/failure/failure.ts";
import type { Outcome } from "#runtime/results/submission.ts";
import { signalOf } from "#runtime/rpc/http/connect/reply.ts";
import { contractValidator } from "#runtime/schema/contract/contract-validator.ts";
import { parseExactly } from "#runtime/schema/json/exact-json.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import type { Enter } from "../access/admission.ts";
import { requireOrigin } from "../access/cross-origin.ts";
import { type Door, routeTable } from "./door.ts";
import { answerFailure, answerJson, answerStream, type Exchange, optionsFor, readJson } from "./exchange.ts";

/*
 * External services without an RPC client (TOOL-6, TOOL-7):
 *
 *   GET  /api/tool-calls?tool=a&tool=b&watcher=name           calls as server-sent events: `call`, `withdrawn`; `notice` of a tool
 *                                                             that brings none; `refused` ends it
 *   POST /api/tool-calls/:callId/acknowledgement {deliveryId} takes a call
 *   POST /api/runs/:runId/tool-results {callId, result|error, submissionId?}
 *                                                             404 unknown or of another run, 409 already resolved by another
 *                                                             submission; calls from outside of a run have an empty one
 */

export interface ToolCallPaths {
  calls: Client<typeof ToolCallService>;
  enter: Enter;
  maxBytes: number;
}

/** Each path stands for a method, and lets in whom the method does. */
const METHODS = ToolCallService.method;

type Answer = (paths: ToolCallPaths, given: Exchange, segment: string) => Promise<void>;

const ROUTES: readonly { method: string; route: string; answer: Answer }[] = [
  { method: "GET", route: "/api/tool-calls", answer: stream },
  { method: "POST", route: "/api/tool-calls/{id}/acknowledgement", answer: replying(acknowledge) },
  { method: "POST", route: "/api/runs/{id}/tool-results", answer: replying(submit) },
  { method: "POST", route: "/api/runs//tool-results", answer: replying(submit) },
];

const served = routeTable(ROUTES);

export function createToolCallDoor(paths: ToolCallPaths): Door {
  return {
    routes: ROUTES.map(({ route }) => route),
    takes(request, response, body) {
      const [path = ""] = (request.url ?? "/").split("?", 1);
      const found = served.find(request.method, path);
      if (found === undefined) return false;
      const answered = found.route.answer(paths, { request, response, body }, found.segment);
      answered.catch((error: unknown) => answerFailure(response, error));
      return true;
    },
  };
}

function replying(work: (paths: ToolCallPaths, given: Exchange, segment: string) => Promise<object>): Answer {
  return async (paths, given, segment) => answerJson(given.response, 200, await work(paths, given, segment));
}

async function submit({ calls, enter, maxBytes }: ToolCallPaths, given: Exchange, segment: string) {
  const options = optionsFor(await enter(given.request, given.response, METHODS.submitToolResult));
  const runId = textFrom(segment);
  const fields = requireFields(await readJson(given, maxBytes, parseExactly));
  const [callId, submissionId] = [textOf(fields.callId, "callId"), textOf(fields.submissionId ?? "", "submissionId")];
  const submission = { callId, runId, submissionId, outcome: outcomeFrom(fields) };
  const { call } = await calls.submitToolResult(submission, options);
  return { callId, status: "resolved", late: call?.resolvedLate ?? false };
}

/** A non-empty error wins (CTR-4). Without either, the router refuses it; a result of nothing is written `null`. */
function outcomeFrom({ result, error }: Record<string, unknown>): Outcome {
  const text = textOf(error ?? "", "error");
  return text === "" ? { case: "resultJson", value: JSON.stringify(result) ?? "" } : { case: "error", value: text };
}

async function acknowledge({ calls, enter, maxBytes }: ToolCallPaths, given: Exchange, segment: string) {
  const options = optionsFor(await enter(given.request, given.response, METHODS.acknowledgeToolCall));
  const callId = textFrom(segment);
  const deliveryId = textOf(requireFields(await readJson(given, maxBytes)).deliveryId, "deliveryId");
  await calls.acknowledgeToolCall({ callId, deliveryId }, options);
  return { callId, status: "taken" };
}

async function stream({ calls, enter }: ToolCallPaths, { request, response }: Exchange): Promise<void> {
  const signal = signalOf(response);
  const [, query] = (request.url ?? "/").split("?", 2);
  requireOrigin({ request, response });
  const options = optionsFor(await enter(request, response, METHODS.watchToolCalls));
  const watch = watchFrom(new URLSearchParams(query));
  await answerStream(response, textsFrom(calls.watchToolCalls(watch, { ...options, signal })));
}

async function* textsFrom(watching: AsyncIterable<WatchToolCallsResponse>): AsyncGenerator<string> {
  yield ": watching\n\n";
  try {
    for await (const handed of watching) yield eventFrom(handed);
  } catch (error) {
    const { code, message, reason } = failureFromConnectError(error);
    yield eventText("refused", JSON.stringify({ code, message, reason })); // whoever can comes back
  }
}

/** Judged before the answer begins, so that a bad one has its status. */
function watchFrom(query: URLSearchParams): WatchToolCallsRequest {
  const tools = query.getAll("tool");
  if (tools.length === 0)
    refuseRequest("name the tools: ?tool=NAME&tool=NAME", { field: "tool", message: "is required" });
  const watch = create(WatchToolCallsRequestSchema, { tools, watcherId: query.get("watcher") ?? randomUUID() });
  const { error, violations } = contractValidator.validate(WatchToolCallsRequestSchema, watch);
  return error === undefined
    ? watch
    : refuse("invalid_argument", error.message, {
        reason: "INVALID_REQUEST",
        fieldViolations: violationsFrom({ violations: violations ?? [] }),
        cause: error,
      });
}

function eventFrom({ update }: WatchToolCallsResponse): string {
  if (update.case === undefined) return "";
  if (update.case === "notice") {
    const { tool, problem, closestNames } = update.value;
    return eventText("notice", JSON.stringify({ tool, problem, closestNames }));
  }
  const { call, deliveryId } = update.value;
  return call === undefined ? "" : eventText(update.case, callJson(call, deliveryId), deliveryId);
}

/** The arguments stand in it as they came, of which only the space between values may have lines. */
function callJson(call: ToolCall, deliveryId: string): string {
  const { callId, runId, sessionId, agent, tool, argumentsJson, expireTime } = call;
  const expiresAt = expireTime && timestampDate(expireTime).toISOString();
  const fields = JSON.stringify({ callId, deliveryId, runId, sessionId, agent, tool, expiresAt });
  return `${fields.slice(0, -1)},"arguments":${(argumentsJson || "{}").replaceAll(/[\r\n]/g, " ")}}`;
}

/** A server-sent event. */
function eventText(name: string, dataJson: string, id?: string): string {
  return `event: ${name}\n${id === undefined ? "" : `id: ${id}\n`}data: ${dataJson}\n\n`;
}

function requireFields(body: unknown): Record<string, unknown> {
  return isObject(body)
    ? body
    : refuse("invalid_argument", "the body must be a JSON object", { reason: "INVALID_REQUEST" });
}

function textOf(value: unknown, name: string): string {
  return typeof value === "string"
    ? value
    : refuseRequest(`${name} must be a text`, { field: name, message: "must be a text" });
}

/** A segment of a path, as it was before it was written into one. */
function textFrom(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (cause) {
    return refuse("invalid_argument", `the path cannot be read: ${segment}`, { reason: "INVALID_REQUEST", cause });
  }
}

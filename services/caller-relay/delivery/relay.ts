import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type CallerDeclaration, CallerToolRequestSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import type { ExecuteToolRequest } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { findTool } from "../declarations/declaration.ts";
import type { Calls, StartCall, Waiter } from "../requests/calls.ts";
import type { Holders } from "../requests/holders.ts";
import { keyOfRequest } from "../requests/requests.ts";
import { type CallerStream, type StreamRecords, streamsOf } from "../streams/stream-record.ts";
import type { Declarations } from "./declarations.ts";
import type { HeldCall } from "./delivery.ts";
import { type PatienceParts, waitOnBehalf } from "./patience.ts";

export interface RelayParts extends PatienceParts {
  defaultTimeoutMs: number;
  declarations: Declarations;
  records: StreamRecords;
  calls: Calls;
  holders: Holders;
  hold: (call: HeldCall, signal: AbortSignal) => Promise<ToolResult>;
  /** Joins a call that another instance holds. */
  join: (instance: string, request: ExecuteToolRequest, waiter: Waiter) => Promise<ToolResult>;
}

export type Relay = ReturnType<typeof createRelay>;

const NOT_HELD = "CALL_NOT_FOUND";

export function createRelay(parts: RelayParts) {
  const { calls, holders, declarations, records } = parts;
  const keyOf = (request: ExecuteToolRequest) => keyOfRequest(sessionOf(request), request.callId);
  const nothingHere = async () => refuse("not_found", "the call is not held here", { reason: NOT_HELD });

  /** One that does not answer is not waited for once it is known to be lost: its request is taken over. */
  async function locate(request: ExecuteToolRequest): Promise<string | undefined> {
    const located = holders.locate(sessionOf(request), request.callId);
    return request.resumed ? located.catch(() => undefined) : located;
  }

  async function readCaller(sessionId: string): Promise<CallersState> {
    const [declaration, record] = await Promise.all([declarations.read(sessionId), records.read(sessionId)]);
    return { declaration, streams: streamsOf(record?.value) };
  }

  async function call(request: ExecuteToolRequest, waiter: Waiter): Promise<ToolResult> {
    const key = keyOf(request);
    if (calls.has(key)) return calls.run(key, nothingHere, waiter);
    const reading = readCaller(sessionOf(request)); // while it is found out whether somebody holds the call
    reading.catch(() => {}); // told to who starts the call
    const holder = await locate(request);
    if (holder !== undefined) {
      try {
        return await parts.join(holder, request, waiter);
      } catch (error) {
        if (!request.resumed || waiter.signal.aborted || !isLeft(error)) throw error;
      }
    }
    const start: StartCall = async (abandoned, tell) => {
      const { declaration, streams } = await reading;
      return parts.hold({ ...heldCall(request, declaration, parts), streams, tell }, abandoned);
    };
    return calls.run(key, start, waiter);
  }

  return {
    /** Calls a tool of the session's caller. A second call of the same id joins the first, whichever instance holds it. */
    call: (request: ExecuteToolRequest, waiter: Waiter) => waitOnBehalf(parts, waiter, (ours) => call(request, ours)),
    /** Joins a call that is held here; refuses when it is not. */
    joinHere: (request: ExecuteToolRequest, waiter: Waiter) =>
      waitOnBehalf(parts, waiter, (ours) => {
        const key = keyOf(request);
        return calls.has(key) ? calls.run(key, nothingHere, ours) : nothingHere(); // one that is being left is held no more
      }),
  };
}

/** Whether the holder has it no more: it has ended, and DELIVERY7 finds how, or its instance stops or is lost. */
function isLeft(error: unknown): boolean {
  const { code, reason } = failureFromConnectError(error);
  return reason === NOT_HELD || code === "unavailable";
}

/** What is recorded of a session's caller. */
interface CallersState {
  readonly declaration: CallerDeclaration | undefined;
  readonly streams: readonly CallerStream[];
}

function sessionOf(request: ExecuteToolRequest): string {
  return request.scope?.sessionId || refuseField("scope.session_id", "a caller's tools belong to a session");
}

/** How much earlier than the tool's own time a deadline may be and still be the same for who reads it. */
const sameTimeMs = 1_000;

export function heldCall(
  request: ExecuteToolRequest,
  declaration: CallerDeclaration | undefined,
  { clock, defaultTimeoutMs }: Pick<RelayParts, "clock" | "defaultTimeoutMs">,
): Omit<HeldCall, "tell" | "streams"> {
  const sessionId = sessionOf(request);
  const tool = declaration && findTool(declaration, request.tool);
  if (!tool)
    refuse("not_found", `the caller of session ${sessionId} declares no tool "${request.tool}"`, {
      reason: "TOOL_NOT_FOUND",
    });
  const now = clock.now();
  const givenMs = msFromDuration(tool.timeout) ?? defaultTimeoutMs;
  const leftMs = request.deadline ? timestampMs(request.deadline) - now : givenMs;
  const isCapped = !request.resumed && leftMs < givenMs - sameTimeMs; // what is left of one that is asked for again is the rest of its time
  const expiresAtMs = now + Math.max(Math.min(givenMs, leftMs), 0);
  return {
    request: create(CallerToolRequestSchema, {
      requestId: request.callId,
      sessionId,
      tool: tool.name,
      argumentsJson: request.argumentsJson || "{}",
      expireTime: timestampFromMs(expiresAtMs),
    }),
    agent: request.scope?.agent ?? "",
    tool: request.tool,
    expiresAtMs,
    isCapped,
    isResumed: request.resumed,
    timeoutMs: isCapped ? Math.max(leftMs, 0) : givenMs,
  };
}

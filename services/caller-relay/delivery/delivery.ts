/**
 * The life of a call to a tool of the caller. The instance that is asked for the call holds it: it waits for the answer, which
 * reaches it wherever it was given. The caller's stream may be in any instance, and may move while the call waits.
 *
 *   find the stream's record ──▶ have the request carried there ──▶ stream ended ──▶ find it again, or give up
 *
 * DELIVERY1  The record decides where the caller's stream is. It is read when the call comes, and again before every further sending.
 * DELIVERY2  Changes are subscribed to before the record is read, so that a caller that comes back is never missed.
 * DELIVERY3  A request keeps its id and its time, however often it is sent.
 * DELIVERY4  A stream that another one of its name replaced hands its requests over to that one. A stream that ended otherwise hands them
 *     over, to the caller's other streams or to its next one, only within the grace that its caller asked for.
 * DELIVERY5  If a recorded stream is gone, whoever finds out says so in the record.
 * DELIVERY6  If a call is given up before its tool's time (its run was canceled, its caller left, their deadline passed), the caller
 *     that has the request is told the request's id and the reason (LOOP-15). From then on, an answer is refused like one to an
 *     unknown request. A caller that is away is told when it comes back within its grace. If the instance that holds the call
 *     dies and no other one takes it over, the instance with the caller's stream tells the caller. At the end of the tool's own
 *     time nobody is told: the request named that time, and its first answer is taken as a late one.
 * DELIVERY7  If the instance that holds a call dies, the router asks another one (`resumed`), which takes over the request from the stream
 *     that carries it: the caller is told nothing, and its answer counts, also when it came before. What no stream carries any
 *     more is sent again only to a caller that asked for a grace.
 *     Until it finds out, one that was only frozen may hold the call, too: what that took for an answer counts.
 * DELIVERY8  Whoever made the call is told of that grace, and that is on its way, before the request is sent; and when it changes. For so
 *     long the router asks for the next instance, while none is there: a caller that has a request is never forgotten by the router.
 * DELIVERY9  Whoever waits for a call and is lost has canceled nothing (`patience.ts`).
 */

import { create } from "@bufbuild/protobuf";
import type { CallerToolRequest } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { AnsweredRequestSchema } from "#gen/toolbus/internal/caller/v1/answered_request_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { recordedAnswer } from "../requests/answered-requests.ts";
import type { AnswersParts } from "../requests/answers.ts";
import type { TellCall } from "../requests/calls.ts";
import { keyOfRequest, type OpenRequest } from "../requests/requests.ts";
import type { CallerStream } from "../streams/stream-record.ts";
import {
  type Sending,
  type SendingParts,
  type Sent,
  send,
  takeOver,
  tellGivenUp,
  type Undelivered,
} from "./sending.ts";

export interface HeldCall {
  request: CallerToolRequest;
  agent: string;
  /** As the agent sees it. */
  tool: string;
  expiresAtMs: number;
  /** The time that was given, as it is told to the agent. */
  timeoutMs: number;
  /** Whether that is less than the tool's own: what is left of whoever made the call, which then has ended, too. */
  isCapped: boolean;
  /** Whether an instance that was lost held it before. */
  isResumed: boolean;
  /** The caller's open streams when the call came. */
  streams: readonly CallerStream[];
  /** Is told how far the caller says that it has come, and how long the call may be without an instance. */
  tell: TellCall;
}

export interface DeliveryParts extends SendingParts, Pick<AnswersParts, "requests" | "holders" | "late"> {}

type Outcome = Sent | { kind: "timed_out" };

/** Gives the caller's answer, or the error that the agent is told instead. */
export async function deliver(parts: DeliveryParts, call: HeldCall, signal: AbortSignal): Promise<ToolResult> {
  const over = new AbortController();
  const found = call.isResumed ? [] : call.streams;
  const sending: Sending = {
    over: over.signal,
    isSent: false,
    isResumed: call.isResumed,
    graceMs: 0,
    tell: call.tell,
    found,
  };
  try {
    return await hold(parts, call, sending, signal);
  } finally {
    if (sending.givenUp !== undefined) await tellGivenUp(parts, call.request, sending, sending.givenUp.why);
    over.abort(CALL_OVER);
  }
}

/** Made once: errors with a stack for each call that ends well would cost more than all else of its ending. */
const CALL_OVER = new Failure("canceled", "the call is over", { reason: "CANCELED" });

async function hold(parts: DeliveryParts, call: HeldCall, sending: Sending, signal: AbortSignal): Promise<ToolResult> {
  const { sessionId, requestId } = call.request;
  const key = keyOf(call);
  using _ = parts.holders.announce(sessionId, requestId);
  using open = parts.requests.open(key, {
    onProgress: (progress) => call.tell({ case: "progress", value: progress }),
    takenOver: call.isResumed,
  });
  const outcomes = Promise.race<Outcome>([
    open.answered.then((result) => ({ kind: "answered", result })),
    (call.isResumed ? takeOver : send)(parts, call.request, sending),
    parts.clock.delay(call.expiresAtMs - parts.clock.now(), sending.over).then(() => ({ kind: "timed_out" })),
  ]);
  try {
    const outcome = await unlessAborted(outcomes, signal);
    if (outcome.kind === "answered") return outcome.result;
    const taken = await recordedAnswer(parts, key, call.isResumed); // DELIVERY7
    if (taken !== undefined) return taken;
    if (outcome.kind === "disconnected" && !(await resolve(parts, call, open))) return await open.answered;
    if (outcome.kind !== "timed_out") return errorResult(textOf(outcome.kind, call), "CALLER_NOT_ATTACHED");
    if (!(await expire(parts, call, open))) return await open.answered;
    if (call.isCapped) sending.givenUp = { why: timeIsOver };
    return errorResult(textOf("timed_out", call), "DEADLINE_EXCEEDED");
  } catch (error) {
    // whoever gave up at the call's own deadline was a moment quicker than the timer here
    const isAtItsTime = call.expiresAtMs - parts.clock.now() <= 100;
    if (signal.aborted && (call.isCapped || !isAtItsTime))
      sending.givenUp = { why: isAtItsTime ? timeIsOver : signal.reason };
    if (signal.aborted) await (isAtItsTime ? expire : resolve)(parts, call, open);
    throw error;
  }
}

const timeIsOver = new Failure("deadline_exceeded", "the time of whoever made the call is over", {
  reason: "DEADLINE_EXCEEDED",
});

/** From here on an answer is late, or comes to nobody when the run has no time left; false when one was quicker. */
function expire(parts: DeliveryParts, call: HeldCall, open: OpenRequest): Promise<boolean> {
  if (call.isCapped) return resolve(parts, call, open);
  return open.expire(async () => {
    const key = keyOf(call);
    // what another holder ended, and not its caller, may still be answered; an answer that it took stands
    await parts.answered.remove(key, (record) => !(record.takenOver && record.resultId !== ""));
    await parts.late.create(key, { agent: call.agent, tool: call.tool }); // written twice is written
  });
}

/** From here on the request is resolved without an answer, and whoever answers is told so; false when one was quicker. */
function resolve({ answered }: DeliveryParts, call: HeldCall, open: OpenRequest): Promise<boolean> {
  const unlessAway = () => {}; // without the record an answer is refused all the same, as that of an unknown request
  return open.expire(() => answered.create(keyOf(call), create(AnsweredRequestSchema)).then(() => {}, unlessAway));
}

function keyOf({ request }: HeldCall): string {
  return keyOfRequest(request.sessionId, request.requestId);
}

function textOf(kind: Undelivered | "timed_out", { request, tool, timeoutMs }: HeldCall): string {
  switch (kind) {
    case "timed_out":
      return `Caller tool "${tool}" timed out after ${timeoutMs}ms`;
    case "disconnected":
      return `Connection lost: the caller disconnected before it answered the call of "${tool}"`;
    case "not_attached":
      return `Connection missing: no caller is attached to session ${request.sessionId} to run "${tool}"`;
  }
}

import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Holders } from "./holders.ts";
import type { LateRequest, LateRequests } from "./late-requests.ts";
import { type CallerAnswer, keyOfRequest, type Requests, refuseUnreadable, resultFromAnswer } from "./requests.ts";

/** A result on its way to the inbox of an agent that has given up waiting. */
export interface LateResult extends LateRequest {
  sessionId: string;
  requestId: string;
  result: ToolResult;
}

export interface AnswersParts {
  instance: string;
  requests: Requests;
  holders: Holders;
  late: LateRequests;
  /** Hands an answer to another instance; gives whether it was taken there. */
  forward: (instance: string, sessionId: string, requestId: string, answer: CallerAnswer) => Promise<boolean>;
  /** Gives false when the inbox was told of that call before: then another answer has won. */
  tellInbox: (late: LateResult) => Promise<boolean>;
}

export interface Answers {
  /** Resolves the request, wherever it waits; of all answers one wins, the others are refused. */
  respond(sessionId: string, requestId: string, answer: CallerAnswer): Promise<{ late: boolean }>;
  /** Resolves it if it waits here. */
  respondHere(sessionId: string, requestId: string, answer: CallerAnswer): Promise<boolean>;
}

export function createAnswers(parts: AnswersParts): Answers {
  const { requests, holders, late, instance } = parts;

  const respondHere: Answers["respondHere"] = async (sessionId, requestId, answer) => {
    const reception = requests.answer(keyOfRequest(sessionId, requestId), answer);
    if (reception.kind === "late") await reception.recorded;
    return reception.kind === "taken";
  };
  const respondElsewhere: Answers["respondHere"] = async (sessionId, requestId, answer) => {
    const holder = await holders.locate(sessionId, requestId);
    if (holder === undefined || holder === instance) return false;
    return parts.forward(holder, sessionId, requestId, answer);
  };
  const respondLate: Answers["respondHere"] = async (sessionId, requestId, answer) => {
    const request = await late.read(sessionId, requestId);
    if (request === undefined) return false;
    const isFirst = await parts.tellInbox({ ...request, sessionId, requestId, result: resultFromAnswer(answer) });
    await late.remove(sessionId, requestId);
    return isFirst;
  };

  return {
    respondHere,
    async respond(sessionId, requestId, answer) {
      refuseUnreadable(answer);
      if (await respondHere(sessionId, requestId, answer)) return { late: false };
      if (await respondElsewhere(sessionId, requestId, answer)) return { late: false };
      if (await respondLate(sessionId, requestId, answer)) return { late: true };
      return refuseResolved(requestId);
    },
  };
}

export function refuseResolved(requestId: string): never {
  return refuse("not_found", `request ${requestId} not found or already resolved`, { reason: "CALL_NOT_FOUND" });
}

import type { AnsweredRequest } from "#gen/toolbus/internal/caller/v1/answered_request_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { isRepetition, resultFromOutcome, type Submission, type Won } from "#runtime/results/submission.ts";
import type { Attachments } from "../streams/attachments.ts";
import { type CallerStream, type StreamRecords, streamsOf } from "../streams/stream-record.ts";
import { type AnswerStores, keepAnswer, recordAnswer, recordOf, resultOf } from "./answered-requests.ts";
import type { Holders } from "./holders.ts";
import type { LateRequest, LateRequests } from "./late-requests.ts";
import { keyOfRequest, type Reception, type Requests } from "./requests.ts";

/*
 * ANSWER1  Of all submissions for a request one wins. While somebody waits, the memory of the instance that holds the call decides, and
 *     between two that hold it the record; later, the record of the late request does.
 * ANSWER2  The winner is recorded before anybody is told. For an hour, whoever repeats it gets the same answer, and whoever answers
 *     again is told that the request is resolved, from any instance, also when the instance that took the winner has died.
 * ANSWER3  A late answer stays in its record until the inbox has it. If a crash left that undone, the next submission finishes it.
 * ANSWER4  What the winner says is recorded with it. If the router did not get it, as that or the instance which took it was lost, the
 *     router asks for the call again, and gets it. One that is too large for a record is lost then: the outcome is unknown.
 * ANSWER5  An answer that comes while no instance holds the call, as its holder has died, is recorded by the instance whose stream
 *     carries the request.
 */

/** A result on its way to the inbox of an agent that has given up waiting. */
export interface LateResult extends LateRequest {
  sessionId: string;
  requestId: string;
  result: ToolResult;
}

export interface AnswersParts extends AnswerStores {
  requests: Requests;
  holders: Holders;
  late: LateRequests;
  /** Hands a submission to another instance; gives whether it won there. */
  forward: (instance: string, sessionId: string, requestId: string, submission: Submission) => Promise<boolean>;
  /** Gives false when the inbox was told of that call before: then another answer has won. */
  tellInbox: (late: LateResult) => Promise<boolean>;
  instance: string;
  attachments: Pick<Attachments, "find">;
  records: StreamRecords;
  /** ANSWER5: has another instance keep it. */
  keepAt: (stream: CallerStream, sessionId: string, requestId: string, submission: Submission) => Promise<boolean>;
}

export type Answers = ReturnType<typeof createAnswers>;

export function createAnswers(parts: AnswersParts) {
  const { requests, holders, late, answered } = parts;

  /** Resolves it if it waits here. */
  function respondHere(sessionId: string, requestId: string, submission: Submission): Promise<Reception> {
    const key = keyOfRequest(sessionId, requestId);
    return requests.answer(key, submission, async (takenOver) => {
      const { record, isNew } = await recordAnswer(parts, key, submission, takenOver);
      return isNew ? undefined : { won: wonIn(record), result: await resultOf(parts, key, record) };
    });
  }

  async function respondElsewhere(sessionId: string, requestId: string, submission: Submission): Promise<boolean> {
    const holder = await holders.locate(sessionId, requestId);
    return holder !== undefined && parts.forward(holder, sessionId, requestId, submission);
  }

  async function respondLate(sessionId: string, requestId: string, submission: Submission): Promise<boolean> {
    const key = keyOfRequest(sessionId, requestId);
    const request = (await late.read(key))?.value;
    if (request === undefined) return false;
    const own = recordOf(submission, { lateResult: resultFromOutcome(submission.outcome) });
    const isClaimed = (await answered.create(key, own)) !== undefined; // ANSWER1
    const standing = isClaimed ? own : (await answered.read(key))?.value;
    const result = standing?.lateResult;
    if (standing === undefined || result === undefined) return false;
    const isNew = await parts.tellInbox({ ...request, sessionId, requestId, result }); // ANSWER3
    await late.remove(key);
    return isClaimed ? isNew : hasWon(standing, submission, requestId);
  }

  /** ANSWER5: false when the stream carries no such request without a holder, or another answer is recorded. */
  async function keepHere(attachmentId: string, requestId: string, submission: Submission): Promise<boolean> {
    const attachment = parts.attachments.find(attachmentId);
    if (!attachment?.isOrphaned(requestId)) return false;
    if (!(await keepAnswer(parts, keyOfRequest(attachment.sessionId, requestId), submission))) return false;
    attachment.markAnswered(requestId);
    return true;
  }

  async function keepForNext(sessionId: string, requestId: string, submission: Submission): Promise<boolean> {
    for (const stream of streamsOf((await parts.records.read(sessionId))?.value)) {
      const isKept =
        stream.instance === parts.instance
          ? await keepHere(stream.attachmentId, requestId, submission)
          : await parts.keepAt(stream, sessionId, requestId, submission);
      if (isKept) return true;
    }
    return false;
  }

  async function respondAgain(
    sessionId: string,
    requestId: string,
    submission: Submission,
  ): Promise<{ late: boolean }> {
    const { value: standing } = (await answered.read(keyOfRequest(sessionId, requestId))) ?? refuseUnknown(requestId);
    if (!hasWon(standing, submission, requestId)) refuseResolved(requestId);
    return { late: standing.lateResult !== undefined };
  }

  return {
    respondHere,
    keepHere,
    /** Resolves the request, wherever it waits; of all submissions one wins, the others are refused. */
    async respond(sessionId: string, requestId: string, submission: Submission): Promise<{ late: boolean }> {
      const reception = await respondHere(sessionId, requestId, submission);
      if (reception === "won") return { late: false };
      if (reception === "lost") return refuseResolved(requestId);
      if (await respondElsewhere(sessionId, requestId, submission)) return { late: false };
      if (await respondLate(sessionId, requestId, submission)) return { late: true };
      if (await keepForNext(sessionId, requestId, submission)) return { late: false };
      return respondAgain(sessionId, requestId, submission);
    },
  };
}

function wonIn({ submissionId, submissionSha256: sha256 }: AnsweredRequest): Won {
  return { submissionId, sha256 };
}

function hasWon(standing: AnsweredRequest, submission: Submission, requestId: string): boolean {
  return isRepetition(wonIn(standing), submission, requestId);
}

/** CTR-4: one text, as whoever answers too late may find the request forgotten; the reason tells what is known. */
const textOf = (requestId: string) => `request ${requestId} not found or already resolved`;

export function refuseResolved(requestId: string): never {
  const metadata = { call_id: requestId };
  return refuse("failed_precondition", textOf(requestId), { reason: "CALL_ALREADY_RESOLVED", metadata });
}

export function refuseUnknown(requestId: string): never {
  return refuse("not_found", textOf(requestId), { reason: "CALL_NOT_FOUND", metadata: { call_id: requestId } });
}

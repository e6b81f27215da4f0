import type { CallHistory, Strike, Submission } from "./history.ts";
import { errorOf, isPendingAnswer, reasonOf, submittedValueFrom } from "./reasons.ts";
import type { Rule } from "./rule.ts";

/** How long an answer that stands may take to its caller: routers that stand still are given up within that time. */
const STALL_MS = 10_000;

export const checkAnswer: Rule = function* ({ answer, failure, tool, callId }) {
  if (answer === undefined) {
    yield `its caller has no answer: ${failure || "nothing was heard"}`;
  } else if (answer.isError) {
    if (reasonOf(answer.outputJson) === undefined) yield `its error says no reason: ${errorOf(answer.outputJson)}`;
  } else if (tool.isAsync !== isPendingAnswer(answer.outputJson, callId) && !isOfSubmitter(answer.outputJson)) {
    yield `its caller was answered with ${answer.outputJson}`;
  }
};

/** What the caller got is what stands, unless it was told that the result comes later. */
export const checkRecord: Rule = function* ({ record, answer, callId }) {
  if (record === undefined) yield "it has no record";
  else if (record.state !== "resolved") yield `it was left ${record.state}`;
  else if (record.isError && reasonOf(record.outputJson) === undefined) {
    yield `its recorded error says no reason: ${errorOf(record.outputJson)}`;
  } else if (
    answer !== undefined &&
    !comesLater(answer.outputJson, callId) &&
    answer.outputJson !== record.outputJson
  ) {
    yield `its caller got ${answer.outputJson}, and recorded is ${record.outputJson}`;
  }
};

/** TOOL-7. Who never heard anything may have won; everybody else knows. */
export const checkWinner: Rule = function* ({ submissions, record, number }) {
  const winners = submissions.filter(({ end }) => end === "won");
  if (winners.length > 1) yield `${winners.map(({ submitter }) => submitter).join(" and ")} were told that they won`;
  if (record?.state !== "resolved") return;
  const isSubmitted = !record.isError && isOfSubmitter(record.outputJson);
  if (!isSubmitted && winners.length > 0) yield `${winners[0]?.submitter} won, and recorded is ${record.outputJson}`;
  if (!isSubmitted) return;
  const author = authorOf(submissions, record.outputJson);
  if (author === undefined) yield `nobody submitted what is recorded: ${record.outputJson}`;
  else if (author.end === "refused")
    yield `${author.submitter} was refused (${author.why}), and its result is recorded`;
  if (submittedValueFrom(record.outputJson).number !== number) yield "its result is another call's";
};

/** TOOL-8. */
export const checkInTime: Rule = function* ({ answer, record, submissions, tool }, { strikes }) {
  if (answer === undefined || tool.isAsync || record?.state !== "resolved") return;
  const isTimedOut = reasonOf(answer.outputJson) === "timed_out";
  if (isTimedOut && !record.isLate) yield "its caller timed out although the answer came in time";
  const winner = authorOf(submissions, record.outputJson);
  if (winner === undefined || answer.outputJson !== record.outputJson) return;
  const sinceMs = Math.max(winner.atMs, answer.attemptAtMs);
  const waitedMs = answer.atMs - sinceMs - stoodStillMs(strikes, sinceMs, answer.atMs);
  if (waitedMs > STALL_MS) yield `its caller waited ${waitedMs} ms for an answer that stood`;
};

/** TOOL-9: what its caller did not get in line is in the inbox once; nothing else is. */
export const checkInbox: Rule = function* ({ answer, record, inbox, callId }) {
  if (record?.state !== "resolved" || answer === undefined) return;
  if (inbox.length > 1) yield `it is in the inbox ${inbox.length} times`;
  const [event] = inbox;
  if (event === undefined) {
    if (comesLater(answer.outputJson, callId)) yield "its caller was told to wait, and nothing came";
    if (record.isLate) yield "its result came late, and is not in the inbox";
  } else if (event !== record.outputJson) yield `in the inbox is ${event}, and recorded is ${record.outputJson}`;
  else if (!record.isLate) yield "its result came in time, and is in the inbox";
};

/** For how long of that time a router stood still: each stretch once. */
function stoodStillMs(strikes: readonly Strike[], fromMs: number, toMs: number): number {
  let [sumMs, reachedMs] = [0, fromMs];
  for (const strike of strikes.toSorted((one, other) => one.fromMs - other.fromMs)) {
    const [begin, end] = [Math.max(strike.fromMs, reachedMs), Math.min(strike.toMs, toMs)];
    if (end <= begin) continue;
    sumMs += end - begin;
    reachedMs = end;
  }
  return sumMs;
}

function comesLater(outputJson: string, callId: string): boolean {
  return isPendingAnswer(outputJson, callId) || reasonOf(outputJson) === "timed_out";
}

function isOfSubmitter(outputJson: string): boolean {
  const output: unknown = JSON.parse(outputJson);
  return typeof output === "object" && output !== null && "submitter" in output;
}

function authorOf(submissions: CallHistory["submissions"], outputJson: string): Submission | undefined {
  return submissions.find(({ resultJson }) => resultJson === outputJson);
}

/**
 * What somebody outside says of a call. All doors for answers take it alike: callers of a session, external services, people in
 * a space, the client of a run.
 */

import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Taker } from "../collections/turns/own-turn.ts";
import { refuse } from "../failure/failure.ts";
import { faultOfJson } from "../schema/json/json-turn.ts";
import { errorResult } from "./error-result.ts";

export interface Submission {
  /** Tells it from every other one for the same call; empty for one that cannot be repeated. */
  readonly submissionId: string;
  readonly outcome: Outcome;
}

export type Outcome =
  | { readonly case: "resultJson"; readonly value: string }
  | { readonly case: "error"; readonly value: string };

/** As it arrives. */
export interface GivenSubmission {
  readonly submissionId: string;
  readonly outcome: Outcome | { readonly case: undefined; readonly value?: undefined };
}

/** Refuses one that says nothing: a slip of whoever submits must not end the call for good. */
export function submissionFrom({ submissionId, outcome }: GivenSubmission, callId: string): Submission {
  if (outcome.case !== undefined && outcome.value !== "") return { submissionId, outcome };
  const message = `neither a result nor an error of call ${callId} is given; a result that holds nothing is null`;
  return refuse("invalid_argument", message, { reason: "RESULT_INVALID", metadata: { call_id: callId } });
}

/** Likewise one whose result nobody could read; its call stays open. */
export async function readableSubmissionFrom(
  given: GivenSubmission,
  callId: string,
  taker: Taker,
): Promise<Submission> {
  const submission = submissionFrom(given, callId);
  const message = await faultOfOutcome(submission.outcome, taker);
  if (message === undefined) return submission;
  return refuse("invalid_argument", `the result of call ${callId} ${message}`, {
    reason: "RESULT_INVALID",
    metadata: { call_id: callId },
    fieldViolations: [{ field: "result_json", message }],
  });
}

/** What is wrong with the text of a result; an error is any text. */
export async function faultOfOutcome({ case: kind, value }: Outcome, taker: Taker): Promise<string | undefined> {
  return kind === "error" ? undefined : faultOfJson(value, taker);
}

/** What it says of the call. */
export function resultFromOutcome({ case: kind, value }: Outcome): ToolResult {
  return kind === "error" ? errorResult(value) : create(ToolResultSchema, { outputJson: value });
}

/** The one that won, as it is remembered. */
export interface Won {
  readonly submissionId: string;
  readonly sha256: Uint8Array;
}

export function wonBy(submission: Submission): Won {
  const { submissionId, outcome } = submission;
  const isNamed = submissionId !== "";
  return { submissionId, sha256: isNamed ? digestOf(outcome) : new Uint8Array() };
}

/** Whether it is the one that won, once more. Refuses another one under its id. */
export function isRepetition(won: Won, submission: Submission, callId: string): boolean {
  const { submissionId, outcome } = submission;
  if (submissionId === "" || submissionId !== won.submissionId) return false;
  return digestOf(outcome).equals(won.sha256) || refuseReused(callId, submissionId);
}

export function refuseReused(callId: string, submissionId: string): never {
  const message = `the submission id ${JSON.stringify(submissionId)} stands for another outcome of call ${callId}`;
  return refuse("already_exists", message, { reason: "SUBMISSION_ID_REUSED", metadata: { call_id: callId } });
}

/** SHA-256 of what it says. */
export function digestOf({ case: kind, value }: Outcome): Buffer {
  return createHash("sha256").update(`${kind}\n`).update(value).digest();
}

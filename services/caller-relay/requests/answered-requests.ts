import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type AnsweredRequest, AnsweredRequestSchema } from "#gen/toolbus/internal/caller/v1/answered_request_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { digestOf, resultFromOutcome, type Submission, wonBy } from "#runtime/results/submission.ts";
import { requestOf } from "./requests.ts";

export interface AnswerStores {
  /** Which submissions have won, by `keyOfRequest`, so that their repetition is told so, by any instance and after a crash. */
  answered: Bucket<AnsweredRequest>;
  /** What they say, by the same key and what names it there: that of a submission which did not win is read by nobody. The oldest are forgotten first. */
  results: Bucket<ToolResult>;
}

/** An answer that has won, as it is recorded. */
export type RecordedAnswer = { readonly record: AnsweredRequest; readonly isNew: boolean };

/**
 * Records the answer of who holds the call (ANSWER2, ANSWER4), unless another holder of it has recorded one: then gives that. `takenOver`: it
 * was held before. What else stands there is of an earlier call of the same id.
 */
export async function recordAnswer(
  stores: AnswerStores,
  key: string,
  submission: Submission,
  takenOver: boolean,
): Promise<RecordedAnswer> {
  const own = recordOf(submission, { takenOver });
  const storing = storeResult(stores, keyOfResult(key, own), submission);
  if (takenOver) await storing; // the holder before may look for it
  const [stored, claimed] = await Promise.allSettled([storing, claim(stores, key, own)]);
  if (claimed.status === "rejected") throw claimed.reason;
  const { record, revision } = claimed.value;
  if (stored.status === "fulfilled") return { record, isNew: revision !== undefined };
  if (revision !== undefined) await stores.answered.remove(key, revision); // it is refused, and may be repeated
  throw stored.reason;
}

/** Records the answer to a request that nobody holds (ANSWER5); false when the request is resolved. */
export async function keepAnswer(stores: AnswerStores, key: string, submission: Submission): Promise<boolean> {
  const own = recordOf(submission, { takenOver: true });
  await storeResult(stores, keyOfResult(key, own), submission); // before it is found to be resolved
  return (await stores.answered.create(key, own)) !== undefined;
}

/** What the answer said that is recorded; undefined when none is. For the first holder of a call, one of who took that over counts. */
export async function recordedAnswer(
  { answered, results }: AnswerStores,
  key: string,
  takenOver: boolean,
): Promise<ToolResult | undefined> {
  const record = (await answered.read(key))?.value;
  const isOfThisCall = record !== undefined && isAnswer(record) && (takenOver || record.takenOver);
  return isOfThisCall ? resultOf({ results }, key, record) : undefined;
}

/** What the record's answer said. */
export async function resultOf(
  { results }: Pick<AnswerStores, "results">,
  key: string,
  record: AnsweredRequest,
): Promise<ToolResult> {
  return record.lateResult ?? (await results.read(keyOfResult(key, record)))?.value ?? refuseLost(key);
}

export function refuseLost(key: string): never {
  const message = `request ${requestOf(key)} was resolved, and no answer to it is kept`;
  return refuse("data_loss", message, { reason: "OUTCOME_UNKNOWN" });
}

export function recordOf(
  submission: Submission,
  more: Pick<MessageInitShape<typeof AnsweredRequestSchema>, "takenOver" | "lateResult">,
): AnsweredRequest {
  const { submissionId, sha256: submissionSha256 } = wonBy(submission);
  const resultId = digestOf(submission.outcome).toString("hex");
  return create(AnsweredRequestSchema, { submissionId, submissionSha256, resultId, ...more });
}

/** Gives the record that stands, with its revision if it is this one. */
async function claim({ answered }: AnswerStores, key: string, own: AnsweredRequest) {
  for (;;) {
    const created = await answered.create(key, own);
    if (created !== undefined) return { record: own, revision: created };
    const standing = await answered.read(key);
    if (standing === undefined) continue; // it has aged out
    const isOfThisCall = own.takenOver || standing.value.takenOver;
    if (isOfThisCall && isAnswer(standing.value)) return { record: standing.value, revision: undefined };
    const replaced = await answered.replace(key, own, standing.revision);
    if (replaced !== undefined) return { record: own, revision: replaced };
  }
}

/** One that is too large is not kept: it is lost to its call if its instance is. */
async function storeResult({ results }: AnswerStores, key: string, submission: Submission): Promise<void> {
  await results.put(key, resultFromOutcome(submission.outcome)).catch((error: unknown) => {
    if (failureFromConnectError(error).reason !== "MESSAGE_TOO_LARGE") throw error;
  });
}

const isAnswer = ({ resultId }: AnsweredRequest) => resultId !== "";
const keyOfResult = (key: string, { resultId }: AnsweredRequest) => `${key}.${resultId}`;

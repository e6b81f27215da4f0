import type { Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { shortened } from "../content/shortened.ts";

/** What went wrong, in the sixteen words that every protocol at the edge can say. */
export type FailureCode =
  | "invalid_argument"
  | "not_found"
  | "already_exists"
  | "failed_precondition"
  | "permission_denied"
  | "unauthenticated"
  | "resource_exhausted"
  | "unavailable"
  | "deadline_exceeded"
  | "canceled"
  | "aborted"
  | "unimplemented"
  | "internal"
  | "unknown"
  | "out_of_range"
  | "data_loss";

/** A value of the contract's `Reason`, by its name without the prefix. */
export type ReasonName = Exclude<keyof typeof Reason, "UNSPECIFIED">;

/** What a peer may say: it may be newer and have more reasons, which are kept by their number, or have given none. */
export type ReceivedReason = keyof typeof Reason | `${number}`;

/** One fault of one field of the request. */
export interface FieldViolation {
  /** The field's path, as the contract spells it. */
  field: string;
  message: string;
  /** The rule of the contract that is broken; without one where no rule of the schema says it. */
  ruleId?: string;
}

export interface FailureOptions<R extends ReceivedReason = ReasonName> {
  /** What the caller tells cases of one code apart by; the contract says of each what to do next. */
  reason: R;
  metadata?: Readonly<Record<string, string>> | undefined;
  fieldViolations?: readonly FieldViolation[] | undefined;
  /** For the log only; never leaves the process. */
  cause?: unknown;
}

/** Characters of a message: it is for a person to read, and goes into logs, records and headers. */
export const MAX_MESSAGE_CHARACTERS = 16_384;

/** What the domain throws. Its message is written for the caller; it reaches the wire as it is. */
export class Failure extends Error {
  readonly code: FailureCode;
  readonly reason: ReceivedReason;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly fieldViolations?: readonly FieldViolation[];

  constructor(code: FailureCode, message: string, options: FailureOptions<ReceivedReason>) {
    super(
      shortened(message, MAX_MESSAGE_CHARACTERS),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = "Failure";
    this.code = code;
    this.reason = options.reason;
    if (options.metadata !== undefined) this.metadata = options.metadata;
    if (options.fieldViolations !== undefined) this.fieldViolations = options.fieldViolations;
  }
}

export function isFailure(error: unknown, ...codes: readonly FailureCode[]): error is Failure {
  return error instanceof Failure && codes.includes(error.code);
}

/** Throws a `Failure`; reads well where an expression refuses: `found ?? refuse("not_found", …)`. */
export function refuse(code: FailureCode, message: string, options: FailureOptions): never {
  throw new Failure(code, message, options);
}

/** Throws the `Failure` for a request of which one field is at fault. */
export function refuseField(field: string, message: string, cause?: unknown): never {
  return refuseRequest(`${field}: ${message}`, { field, message }, cause);
}

/** As `refuseField`, with a message of its own. */
export function refuseRequest(message: string, violation: FieldViolation, cause?: unknown): never {
  const fieldViolations = [violation];
  throw new Failure("invalid_argument", message, { reason: "INVALID_REQUEST", fieldViolations, cause });
}

/** Takes the failure for nothing if something does not exist; throws any other. */
export function unlessMissing(error: unknown): undefined {
  if (!isFailure(error, "not_found")) throw error;
}

/** The message of whatever was thrown, for logs, states and messages that name a cause: a peer may have chosen it. */
export function messageFromUnknown(error: unknown): string {
  return shortened(wholeMessageOf(error), MAX_MESSAGE_CHARACTERS);
}

function wholeMessageOf(error: unknown): string {
  if (error instanceof AggregateError && !error.message) return error.errors.map(messageFromUnknown).join("; ");
  if (error instanceof Error) return error.message || error.name;
  if (typeof error === "string") return error;
  if (typeof error === "object" && error !== null && "message" in error) return String(error.message);
  return String(error);
}

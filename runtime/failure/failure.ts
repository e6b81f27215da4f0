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

export interface FailureOptions {
  /** A machine-readable reason in UPPER_SNAKE, for callers that tell cases of one code apart. */
  reason?: string | undefined;
  metadata?: Record<string, string> | undefined;
  /** For the log only; never leaves the process. */
  cause?: unknown;
}

/** What the thinking throws. Its message is written for the caller; it reaches the wire as it is. */
export class Failure extends Error {
  readonly code: FailureCode;
  readonly reason?: string;
  readonly metadata?: Record<string, string>;

  constructor(code: FailureCode, message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "Failure";
    this.code = code;
    if (options.reason !== undefined) this.reason = options.reason;
    if (options.metadata !== undefined) this.metadata = options.metadata;
  }
}

/** Throws a `Failure`; reads well where an expression refuses: `found ?? refuse("not_found", …)`. */
export function refuse(code: FailureCode, message: string, options?: FailureOptions): never {
  throw new Failure(code, message, options);
}

/** The message of whatever was thrown, for logs and for messages that name a cause. */
export function messageFromUnknown(error: unknown): string {
  if (error instanceof AggregateError && !error.message) return error.errors.map(messageFromUnknown).join("; ");
  if (error instanceof Error) return error.message || error.name;
  if (typeof error === "string") return error;
  if (typeof error === "object" && error !== null && "message" in error) return String(error.message);
  return String(error);
}

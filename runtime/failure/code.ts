import { Code } from "@connectrpc/connect";
import type { FailureCode } from "./failure.ts";

const CODE_BY_FAILURE_CODE: Record<FailureCode, Code> = {
  canceled: Code.Canceled,
  unknown: Code.Unknown,
  invalid_argument: Code.InvalidArgument,
  deadline_exceeded: Code.DeadlineExceeded,
  not_found: Code.NotFound,
  already_exists: Code.AlreadyExists,
  permission_denied: Code.PermissionDenied,
  resource_exhausted: Code.ResourceExhausted,
  failed_precondition: Code.FailedPrecondition,
  aborted: Code.Aborted,
  out_of_range: Code.OutOfRange,
  unimplemented: Code.Unimplemented,
  internal: Code.Internal,
  unavailable: Code.Unavailable,
  data_loss: Code.DataLoss,
  unauthenticated: Code.Unauthenticated,
};

const FAILURE_CODE_BY_CODE = new Map(
  Object.entries(CODE_BY_FAILURE_CODE).map(([failureCode, code]) => [code, failureCode as FailureCode]),
);

export function codeFromFailureCode(failureCode: FailureCode): Code {
  return CODE_BY_FAILURE_CODE[failureCode];
}

export function failureCodeFromCode(code: Code): FailureCode {
  return FAILURE_CODE_BY_CODE.get(code) ?? "unknown";
}

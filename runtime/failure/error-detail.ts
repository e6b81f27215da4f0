import { create } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import type { ValidationError } from "@bufbuild/protovalidate";
import { Code, type ConnectError } from "@connectrpc/connect";
import { type ErrorDetail, ErrorDetailSchema, Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import type { Failure, FieldViolation, ReasonName, ReceivedReason } from "./failure.ts";

/** What the contract wants to be told with every error. */
export function detailFromFailure({ reason, metadata = {}, fieldViolations = [] }: Failure): ErrorDetail {
  return create(ErrorDetailSchema, {
    reason: reasonFromName(reason),
    metadata: { ...metadata },
    fieldViolations: fieldViolations.map((violation) => ({ ruleId: "", ...violation })),
  });
}

/** What the other side told, or undefined. */
export function detailOf(error: ConnectError): ErrorDetail | undefined {
  return error.findDetails(ErrorDetailSchema)[0];
}

/** For an error that a library made, which knows no reasons: what its code says, and the fields of a failed validation. */
export function detailFromError({ code, cause }: ConnectError): ErrorDetail {
  const fieldViolations = isValidationError(cause) ? violationsFrom(cause) : [];
  return create(ErrorDetailSchema, { reason: Reason[reasonFromCode(code) ?? "UNSPECIFIED"], fieldViolations });
}

/**
 * What Connect's server says of a request before a handler gets it, told by the words in which it says so: its codes alone would
 * say that this server failed, or lacks the method.
 */
const UNREAD: readonly (readonly [RegExp, ReasonName])[] = [
  [/^unknown compression /, "PROTOCOL_UNSUPPORTED"],
  [/^(protocol error|cannot decode|parse binary|decompression failed)\b/, "REQUEST_MALFORMED"],
  [/^received compressed envelope, but do not know how to decompress$/, "REQUEST_MALFORMED"],
];

/** For an error that a library's server made of a request that it cannot read; undefined for every other one. */
export function detailFromUnread({ rawMessage, isWireError }: ConnectError): ErrorDetail | undefined {
  const [, reason] = UNREAD.find(([words]) => !isWireError && words.test(rawMessage)) ?? [];
  return reason && create(ErrorDetailSchema, { reason: Reason[reason] });
}

/** The reason of an error of which nothing but its code is known. */
export function reasonFromCode(code: Code): ReasonName | undefined {
  return REASON_BY_CODE[code];
}

const REASON_BY_CODE: Partial<Record<Code, ReasonName>> = {
  [Code.Canceled]: "CANCELED",
  [Code.DeadlineExceeded]: "DEADLINE_EXCEEDED",
  [Code.InvalidArgument]: "INVALID_REQUEST",
  [Code.Unimplemented]: "METHOD_UNIMPLEMENTED",
  [Code.Unauthenticated]: "CREDENTIALS_INVALID",
  [Code.ResourceExhausted]: "MESSAGE_TOO_LARGE", // what Connect itself refuses so is over a limit of bytes
  [Code.Unavailable]: "SERVICE_UNAVAILABLE",
  [Code.Internal]: "INTERNAL",
  [Code.Unknown]: "INTERNAL",
};

/** By its name: most services validate nothing, and need not load what does. */
function isValidationError(error: unknown): error is ValidationError {
  return error instanceof Error && error.name === "ValidationError" && "violations" in error;
}

/** The fields that break the rules of the contract. */
export function violationsFrom({ violations }: Pick<ValidationError, "violations">): Required<FieldViolation>[] {
  return violations.map(({ field, message, ruleId }) => ({ field: pathToString(field), message, ruleId }));
}

const NAME_BY_REASON = new Map<number, keyof typeof Reason>(
  Object.entries(Reason).map(([name, reason]) => [reason, name as keyof typeof Reason]),
);

export function nameFromReason(reason: Reason): ReceivedReason {
  return NAME_BY_REASON.get(reason) ?? `${Number(reason)}`;
}

function reasonFromName(name: ReceivedReason): Reason {
  return name in Reason ? Reason[name as keyof typeof Reason] : (Number(name) as Reason);
}

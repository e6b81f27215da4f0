import { Code, ConnectError, type Interceptor, type StreamRequest, type UnaryRequest } from "@connectrpc/connect";
import type { Logger } from "pino";
import { ErrorDetailSchema, Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { Iterated } from "../collections/feeds/iterated.ts";
import { codeFromFailureCode, failureCodeFromCode } from "./code.ts";
import { detailFromError, detailFromFailure, detailFromUnread, detailOf, nameFromReason } from "./error-detail.ts";
import { Failure, type FailureCode, type FailureOptions, type FieldViolation } from "./failure.ts";

/**
 * What goes over the wire for whatever was thrown. A `Failure` and a `ConnectError` say what they say; an aborted wait is
 * `canceled`, one that ran out of time `deadline_exceeded`; anything else is "internal error", its cause kept for the log.
 * All carry an `ErrorDetail`.
 */
export function connectErrorFromUnknown(error: unknown): ConnectError {
  if (error instanceof ConnectError) return informed(error);
  if (error instanceof Failure) return connectErrorFromFailure(error, error.cause ?? error);
  if (error instanceof Error && error.name === "AbortError")
    return connectError("canceled", "the call was canceled", { reason: "CANCELED", cause: error });
  if (error instanceof Error && error.name === "TimeoutError")
    return connectError("deadline_exceeded", "the call took too long", { reason: "DEADLINE_EXCEEDED", cause: error });
  return connectError("internal", "internal error", { reason: "INTERNAL", cause: error });
}

/** The same on the serving side, where what is thrown may be a library's word on a request that it cannot read. */
export function refusalFromUnknown(error: unknown): ConnectError {
  if (error instanceof ConnectError && !detailOf(error)) {
    const value = detailFromUnread(error);
    if (value) error.details.push({ desc: ErrorDetailSchema, value });
    // Connect says `internal` of bytes that it cannot read, though it is their sender who must mend them
    if (value?.reason === Reason.REQUEST_MALFORMED && error.code === Code.Internal)
      Object.assign(error, { code: Code.InvalidArgument });
  }
  return connectErrorFromUnknown(error);
}

/** The error of the wire, for the edges that make it themselves. */
export function connectError(code: FailureCode, message: string, options: FailureOptions): ConnectError {
  return connectErrorFromFailure(new Failure(code, message, options), options.cause);
}

function connectErrorFromFailure(failure: Failure, cause: unknown): ConnectError {
  const details = [{ desc: ErrorDetailSchema, value: detailFromFailure(failure) }];
  return new ConnectError(failure.message, codeFromFailureCode(failure.code), undefined, details, cause);
}

function informed(error: ConnectError): ConnectError {
  if (!detailOf(error)) error.details.push({ desc: ErrorDetailSchema, value: detailFromError(error) });
  return error;
}

/** The same, with metadata of its own. */
export function copiedError({ rawMessage, code, metadata, details, cause }: ConnectError): ConnectError {
  const copy = new ConnectError(rawMessage, code, metadata, undefined, cause);
  copy.details = details;
  return copy;
}

/** For a wire that takes no more of it: so many characters of its message, and its reason. */
export function shortenedError(error: ConnectError, characters: number): ConnectError {
  const message = `${error.rawMessage.slice(0, characters).toWellFormed()} (the rest of this error was too big to send)`;
  const reason = detailOf(error)?.reason;
  const details = reason === undefined ? [] : [{ desc: ErrorDetailSchema, value: { reason } }];
  return new ConnectError(message, error.code, undefined, details);
}

/** What the domain sees of a call that failed: the other side's code, message, reason, metadata and field violations. */
export function failureFromConnectError(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const { code, rawMessage, ...rest } = readError(connectErrorFromUnknown(error));
  return new Failure(failureCodeFromCode(code), rawMessage, { ...rest, cause: error });
}

function readError(error: ConnectError) {
  const { code, rawMessage } = error;
  const detail = detailOf(error) ?? detailFromError(error);
  const fieldViolations: FieldViolation[] = detail.fieldViolations.map(({ field, message, ruleId }) => ({
    field,
    message,
    ...(ruleId !== "" && { ruleId }),
  }));
  return {
    code,
    rawMessage,
    reason: nameFromReason(detail.reason),
    metadata: Object.keys(detail.metadata).length > 0 ? detail.metadata : undefined,
    fieldViolations: fieldViolations.length > 0 ? fieldViolations : undefined,
  };
}

/** Whether whoever was called could not be reached, fell silent or stops: another one may answer, or the same one later. */
export function isUnavailable(error: unknown): error is ConnectError {
  return error instanceof ConnectError && error.code === Code.Unavailable;
}

/** For servers: turns what handlers throw, in the middle of a stream too, into errors of the wire, and logs what went wrong inside. */
export function createFailureInterceptor(logger: Pick<Logger, "error">): Interceptor {
  return createTranslation((error, { service, method }) => {
    const connectError = refusalFromUnknown(error);
    if (isOurs(connectError)) {
      const name = `${service.typeName}/${method.name}`;
      const err = connectError.cause ?? connectError;
      logger.error({ err, method: name }, `${name} failed: ${connectError.rawMessage}`);
    }
    return connectError;
  });
}

/** Puts another error in the place of each with which a call fails, in the middle of a stream too. */
export function createTranslation(
  translate: (error: unknown, request: UnaryRequest | StreamRequest) => ConnectError,
): Interceptor {
  return (next) => async (request) => {
    try {
      const response = await next(request);
      if (!response.stream) return response;
      const refuse = (error: unknown): never => {
        throw translate(error, request);
      };
      return { ...response, message: failingAs(response.message, refuse) };
    } catch (error) {
      throw translate(error, request);
    }
  };
}

/** An error that somebody must look into; one that another service reported has been logged there, and a broken request is its client's. */
function isOurs(error: ConnectError): boolean {
  if (detailOf(error)?.reason === Reason.REQUEST_MALFORMED) return false;
  const isInternal = error.code === Code.Internal || error.code === Code.Unknown || error.code === Code.DataLoss;
  return isInternal && !error.isWireError;
}

/** The same messages; what they fail with is thrown by `refuse` in its own form. */
export function failingAs<T>(messages: AsyncIterable<T>, refuse: (error: unknown) => never): AsyncIterable<T> {
  return new Iterated<T>(() => {
    const iterator = messages[Symbol.asyncIterator]();
    const leave = async () => (await iterator.return?.()) ?? { done: true as const, value: undefined };
    return { next: () => iterator.next().catch(refuse), return: () => leave().catch(refuse) };
  });
}

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Logger } from "pino";
import { FailureInfoSchema } from "#gen/toolbus/failure/v1/failure_pb.ts";
import { codeFromFailureCode, failureCodeFromCode } from "./code.ts";
import { Failure, type FailureOptions } from "./failure.ts";

/**
 * What goes over the wire for whatever was thrown. A `Failure` and a `ConnectError` say what they say; an aborted wait is
 * `canceled`, one that ran out of time `deadline_exceeded`; anything else is "internal error", its cause kept for the log.
 */
export function connectErrorFromUnknown(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error;
  if (error instanceof Failure) return connectErrorFromFailure(error);
  if (error instanceof Error && error.name === "AbortError") {
    return new ConnectError("the call was canceled", Code.Canceled, undefined, undefined, error);
  }
  if (error instanceof Error && error.name === "TimeoutError") {
    return new ConnectError("the call took too long", Code.DeadlineExceeded, undefined, undefined, error);
  }
  return new ConnectError("internal error", Code.Internal, undefined, undefined, error);
}

function connectErrorFromFailure(failure: Failure): ConnectError {
  const { code, message, reason, metadata, cause } = failure;
  const details =
    reason || metadata ? [{ desc: FailureInfoSchema, value: { reason: reason ?? "", metadata: metadata ?? {} } }] : [];
  return new ConnectError(message, codeFromFailureCode(code), undefined, details, cause ?? failure);
}

/** What the thinking gets to see of a call that failed: the other side's code, message, reason and metadata. */
export function failureFromConnectError(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const connectError = connectErrorFromUnknown(error);
  const [info] = connectError.findDetails(FailureInfoSchema);
  const options: FailureOptions = { cause: error };
  if (info?.reason) options.reason = info.reason;
  if (info && Object.keys(info.metadata).length > 0) options.metadata = info.metadata;
  return new Failure(failureCodeFromCode(connectError.code), connectError.rawMessage, options);
}

/** Whether whoever was called could not be reached, fell silent or stops: another one may answer, or the same one later. */
export function isUnavailable(error: unknown): error is ConnectError {
  return error instanceof ConnectError && error.code === Code.Unavailable;
}

/** For servers: turns what handlers throw, in the middle of a stream too, into errors of the wire, and logs what went wrong inside. */
export function createFailureInterceptor(logger: Pick<Logger, "error">): Interceptor {
  return (next) => async (request) => {
    const translate = (error: unknown): ConnectError => {
      const connectError = connectErrorFromUnknown(error);
      if (isOurs(connectError)) {
        const method = `${request.service.typeName}/${request.method.name}`;
        logger.error(
          { err: connectError.cause ?? connectError, method },
          `${method} failed: ${connectError.rawMessage}`,
        );
      }
      return connectError;
    };
    try {
      const response = await next(request);
      if (!response.stream) return response;
      return { ...response, message: translated(response.message, translate) };
    } catch (error) {
      throw translate(error);
    }
  };
}

/** An error that somebody must look into; one that another service reported has been logged there. */
function isOurs(error: ConnectError): boolean {
  const isInternal = error.code === Code.Internal || error.code === Code.Unknown || error.code === Code.DataLoss;
  return isInternal && !error.isWireError;
}

function translated(
  messages: AsyncIterable<MessageShape<DescMessage>>,
  translate: (error: unknown) => ConnectError,
): AsyncIterable<MessageShape<DescMessage>> {
  const refuse = (error: unknown): never => {
    throw translate(error);
  };
  return {
    [Symbol.asyncIterator]() {
      const iterator = messages[Symbol.asyncIterator]();
      const leave = async () => (await iterator.return?.()) ?? { done: true as const, value: undefined };
      return { next: () => iterator.next().catch(refuse), return: () => leave().catch(refuse) };
    },
  };
}

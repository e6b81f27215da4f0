import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { connectErrorFromUnknown, failureFromConnectError } from "./connect.ts";
import { Failure } from "./failure.ts";

describe("the failure at the edge", () => {
  test("keeps code, message, reason and metadata there and back", () => {
    const failure = new Failure("failed_precondition", "the call is over", {
      reason: "CALL_ALREADY_RESOLVED",
      metadata: { call_id: "c1" },
    });
    const back = failureFromConnectError(connectErrorFromUnknown(failure));
    expect(back).toMatchObject({
      code: "failed_precondition",
      message: "the call is over",
      reason: "CALL_ALREADY_RESOLVED",
      metadata: { call_id: "c1" },
    });
  });

  test("leaks nothing of what was not written for the caller, and keeps it for the log", () => {
    const cause = new Error("password of the database is x");
    const error = connectErrorFromUnknown(cause);
    expect(error).toMatchObject({ code: Code.Internal, rawMessage: "internal error", cause });
  });

  test("an aborted wait is canceled, one that ran out of time is deadline_exceeded", () => {
    expect(connectErrorFromUnknown(AbortSignal.abort().reason).code).toBe(Code.Canceled);
    expect(connectErrorFromUnknown(new DOMException("x", "TimeoutError")).code).toBe(Code.DeadlineExceeded);
  });

  test("passes a ConnectError with the details of others", () => {
    const error = new ConnectError("x", Code.NotFound, undefined, [{ desc: EmptySchema, value: {} }]);
    expect(connectErrorFromUnknown(error)).toBe(error);
    expect(failureFromConnectError(error)).toMatchObject({ code: "not_found", message: "x", cause: error });
  });
});

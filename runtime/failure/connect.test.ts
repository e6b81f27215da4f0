import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ErrorDetailSchema, Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { connectErrorFromUnknown, failureFromConnectError } from "./connect.ts";
import { Failure } from "./failure.ts";
import { LocalFailure } from "./local-failure.ts";

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

  test("keeps the violations of fields there and back", () => {
    const fieldViolations = [{ field: "input[0].text", message: "is empty" }];
    const failure = new Failure("invalid_argument", "no", { reason: "INVALID_REQUEST", fieldViolations });
    expect(failureFromConnectError(connectErrorFromUnknown(failure)).fieldViolations).toEqual(fieldViolations);
  });

  test("keeps a reason of a newer peer by its number, and passes it on", () => {
    const value = { reason: 9_999 as Reason, metadata: { a: "b" } };
    const newer = new ConnectError("x", Code.Aborted, undefined, [{ desc: ErrorDetailSchema, value }]);
    const failure = failureFromConnectError(newer);
    expect(failure).toMatchObject({ code: "aborted", reason: "9999", metadata: { a: "b" } });
    const passed = connectErrorFromUnknown(new Failure(failure.code, failure.message, { reason: failure.reason }));
    expect(passed.findDetails(ErrorDetailSchema)).toMatchObject([{ reason: 9_999 }]);
  });

  test.each([
    [AbortSignal.abort().reason, "CANCELED"],
    [new DOMException("x", "TimeoutError"), "DEADLINE_EXCEEDED"],
    [new Error("x"), "INTERNAL"],
    [new LocalFailure("unavailable", "x", { kind: "of_ours" }), "INTERNAL"],
    [new ConnectError("x", Code.Unimplemented), "METHOD_UNIMPLEMENTED"],
    [new ConnectError("x", Code.DeadlineExceeded), "DEADLINE_EXCEEDED"],
    [new ConnectError("x", Code.Unavailable), "SERVICE_UNAVAILABLE"],
    [new ConnectError("x", Code.DataLoss), "UNSPECIFIED"],
  ] as const)("gives every error its reason: %s is %s", (thrown, reason) => {
    const told = connectErrorFromUnknown(connectErrorFromUnknown(thrown));
    expect(told.findDetails(ErrorDetailSchema)).toMatchObject([{ reason: Reason[reason] }]);
  });

  test("passes a ConnectError with the details of others", () => {
    const error = new ConnectError("x", Code.NotFound, undefined, [{ desc: EmptySchema, value: {} }]);
    expect(connectErrorFromUnknown(error)).toBe(error);
    expect(failureFromConnectError(error)).toMatchObject({ code: "not_found", message: "x", cause: error });
  });
});

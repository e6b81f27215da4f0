import { SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { outcomeOf } from "./outcome.ts";

const httpError = (status: number) =>
  new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, `status ${status}`, { status });

test.each([401, 403, 404, 405, 408, 411, 413, 415, 421, 425, 429, 431, 501, 505, 511])(
  "LOOP-14 a server that refuses a call with HTTP %i has started nothing",
  (status) => {
    expect(outcomeOf(httpError(status), false)).toMatchObject({
      kind: "refused",
      text: expect.stringContaining(`${status}`),
    });
  },
);

test("ORCH-6 a server of 2026-07-28 that does not know a method says so with HTTP 404, also in a session", () => {
  const text = JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32_601, message: "Method not found" } });
  const error = new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, `posting: ${text}`, { status: 404, text });
  expect(outcomeOf(error, false).kind).toBe("answered");
  expect(outcomeOf(error, true).kind).toBe("answered");
});

test.each([500, 502, 503, 504])("LOOP-14 after HTTP %i nobody knows", (status) => {
  expect(outcomeOf(httpError(status), false).kind).toBe("unknown");
});

test.each(["ECONNREFUSED", "ENOTFOUND", "UND_ERR_CONNECT_TIMEOUT"])(
  "LOOP-14 a connection that never came about, %s, started nothing",
  (code) => {
    const cause = Object.assign(new Error("connect"), { code });
    expect(outcomeOf(new TypeError("fetch failed", { cause }), true).kind).toBe("unreachable");
  },
);

test("LOOP-14 a connection that broke may have carried the call", () => {
  const cause = Object.assign(new Error("read"), { code: "ECONNRESET" });
  expect(outcomeOf(new TypeError("fetch failed", { cause }), true).kind).toBe("unknown");
});

test("LOOP-14 of an answer that overflows the stack it is known that it came; of another bound that it broke, nothing", () => {
  const overflow = (): number => 1 + overflow();
  const errorOf = (fail: () => unknown) => {
    try {
      return fail();
    } catch (error) {
      return error;
    }
  };
  expect(outcomeOf(errorOf(overflow), true)).toEqual({
    kind: "answered",
    text: "the server's answer cannot be used: it is nested too deeply",
  });
  const text = "more than 100000 numbers of so many digits are not read";
  expect(outcomeOf(new RangeError(text), true)).toEqual({ kind: "unknown", text });
});

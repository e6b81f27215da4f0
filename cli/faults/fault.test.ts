import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { connectError } from "#runtime/failure/connect.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { exitCodes, toldFromError, UsageFault } from "./fault.ts";

const url = "http://127.0.0.1:7480";
const fromSocket = (code: string) =>
  new ConnectError("it failed below", Code.Unavailable, undefined, undefined, Object.assign(new Error(code), { code }));

describe("what a script is told", () => {
  test.each([
    ["a fault of the command line", new UsageFault("no"), exitCodes.usage],
    [
      "a setting that is refused",
      new Failure("invalid_argument", "no", { reason: "INVALID_REQUEST" }),
      exitCodes.usage,
    ],
    ["arguments that the suite refuses", new ConnectError("no", Code.InvalidArgument), exitCodes.usage],
    [
      "a service that did not start",
      new Failure("unavailable", "no", { reason: "SERVICE_UNAVAILABLE" }),
      exitCodes.failure,
    ],
    ["what does not exist", new ConnectError("no", Code.NotFound), exitCodes.failure],
    ["a service behind the gateway that is away", new ConnectError("no", Code.Unavailable), exitCodes.failure],
    ["anything else", new Error("no"), exitCodes.failure],
  ])("%s keeps its words", (_, error, exitCode) => {
    expect(toldFromError(error, url)).toEqual({ message: "no", exitCode });
  });

  test.each(["ECONNREFUSED", "ENOTFOUND", "ETIMEDOUT"])("%s: where to look for a gateway", (code) => {
    const { message, exitCode } = toldFromError(fromSocket(code), url);
    expect(message).toBe(
      `nothing answers at ${url}. Start the suite with "toolbus up", or name its address with --url.`,
    );
    expect(exitCode).toBe(exitCodes.unreachable);
  });

  test.each(["ERR_HTTP2_ERROR", "ERR_SSL_WRONG_VERSION_NUMBER"])("%s: something else answers there", (code) => {
    const { message, exitCode } = toldFromError(fromSocket(code), url);
    expect(message).toBe(`what answers at ${url} is no gateway of toolbus. Name the gateway's address with --url.`);
    expect(exitCode).toBe(exitCodes.unreachable);
  });

  test("a port that is taken: what may run there, and how to choose another", () => {
    const { message } = toldFromError(
      new Failure("unavailable", "gateway cannot start: the port is taken", { reason: "INTERNAL" }),
      url,
    );
    expect(message).toMatch(/^gateway cannot start: the port is taken\n.* choose another port with --port\.$/);
  });

  test("an agent that is not there: where it says why its file is refused", () => {
    const error = connectError("not_found", 'there is no agent "a"', { reason: "AGENT_NOT_FOUND" });
    expect(toldFromError(error, url)).toEqual({
      message: `there is no agent "a"\n"toolbus agents" lists those that there are, and the files that are refused, with what is wrong in them.`,
      exitCode: exitCodes.failure,
    });
  });

  test("a refused key: where to give one", () => {
    const { message, exitCode } = toldFromError(new ConnectError("no such key", Code.Unauthenticated), url);
    expect(message).toBe(
      "no such key\nGive a key with --api-key or TOOLBUS_API_KEY. That of a suite of this machine is in its directory (.toolbus/keys/local).",
    );
    expect(exitCode).toBe(exitCodes.failure);
  });
});

import { Code, ConnectError } from "@connectrpc/connect";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { Failure, messageFromUnknown, type ReceivedReason } from "#runtime/failure/failure.ts";
import { ownSuite } from "../global-options.ts";
import { exitCodes } from "./exit-codes.ts";
import { invocation } from "./invocation.ts";

export { exitCodes } from "./exit-codes.ts";

/** A fault of the command line itself. */
export class UsageFault extends Error {}

export interface Told {
  message: string;
  exitCode: number;
}

/** One sentence on what went wrong, and where it helps one on what to do. */
export function toldFromError(error: unknown, url: string): Told {
  if (error instanceof UsageFault) return { message: error.message, exitCode: exitCodes.usage };
  if (error instanceof Failure) {
    const exitCode = error.code === "invalid_argument" ? exitCodes.usage : exitCodes.failure;
    const isPortTaken = /the port is taken/.test(error.message);
    return { message: isPortTaken ? `${error.message}\n${hintOfPort}` : error.message, exitCode };
  }
  if (!(error instanceof ConnectError)) return { message: messageFromUnknown(error), exitCode: exitCodes.failure };
  if (isUnreachable(error)) {
    const isStarting = ownSuite()?.state === "starting";
    const start = isStarting
      ? "Wait until the suite is up, which is starting"
      : `Start the suite with "${invocation} up"`;
    return {
      message: `nothing answers at ${url}. ${start}, or name its address with --url.`,
      exitCode: exitCodes.unreachable,
    };
  }
  if (isForeign(error)) {
    const message = `what answers at ${url} is no gateway of toolbus. Name the gateway's address with --url.`;
    return { message, exitCode: exitCodes.unreachable };
  }
  const hint = hintOfReason(failureFromConnectError(error).reason);
  const message = hint === undefined ? error.rawMessage : `${error.rawMessage}\n${hint}`;
  return { message, exitCode: error.code === Code.InvalidArgument ? exitCodes.usage : exitCodes.failure };
}

const hintOfPort = "If a suite runs there already, use that one; otherwise choose another port with --port.";

function hintOfReason(reason: ReceivedReason): string | undefined {
  switch (reason) {
    case "CREDENTIALS_INVALID":
      return "Give a key with --api-key or TOOLBUS_API_KEY. That of a suite of this machine is in its directory (.toolbus/keys/local).";
    case "AGENT_NOT_FOUND":
      return `"${invocation} agents" lists those that there are, and the files that are refused, with what is wrong in them.`;
    case "MCP_SERVER_NOT_FOUND":
      return `Name the agent of an agent's own server with --agent. Whether one asks for a token, or cannot be reached, "${invocation} mcp" says.`;
    case "METHOD_UNIMPLEMENTED":
      return "The suite at this address does not offer this yet.";
    default:
      return undefined;
  }
}

/** Told by the socket, not by a gateway that lacks a service behind it. */
export function isUnreachable(error: ConnectError): boolean {
  const unreachable = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT"];
  return unreachable.includes(causeCodeOf(error));
}

/** Told by the protocol below the calls: another one is spoken there, or TLS on one side only. */
function isForeign(error: ConnectError): boolean {
  const code = causeCodeOf(error);
  return code === "ERR_HTTP2_ERROR" || code.startsWith("ERR_SSL_");
}

function causeCodeOf({ cause }: ConnectError): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : "";
}

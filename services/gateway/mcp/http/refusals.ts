import { ProtocolError } from "@modelcontextprotocol/server";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { Failure, type FailureCode } from "#runtime/failure/failure.ts";
import { retryAfterOf, statusOf } from "../../plain/exchange.ts";

/** Codes of JSON-RPC, and those that MCP adds. */
export const JSON_RPC = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internalError: -32_603,
  /** Of a request that cannot be served as it was sent. */
  refused: -32_000,
  sessionNotFound: -32_001,
  /** Of 2026-07-28. */
  missingCapability: -32_021,
} as const;

/** What went wrong, for a JSON-RPC client: our reason stands in `data`. */
export interface RpcFailure {
  readonly code: number;
  readonly message: string;
  readonly data: Record<string, unknown>;
}

/** Clients begin anew when their session is not found. */
const isSessionGone = ({ reason }: Pick<Failure, "reason">) =>
  reason === "SESSION_NOT_FOUND" || reason === "SESSION_CLOSED";

export function rpcFailureFrom(error: unknown): RpcFailure {
  const { code, message, reason, fieldViolations, metadata } = failureFromConnectError(error);
  const data = { code, reason, ...(metadata && { metadata }), ...(fieldViolations && { fieldViolations }) };
  return { code: codeFrom(code, reason), message, data };
}

function codeFrom(code: Failure["code"], reason: Failure["reason"]): number {
  if (isSessionGone({ reason })) return JSON_RPC.sessionNotFound;
  if (reason === "REQUEST_MALFORMED") return JSON_RPC.parseError;
  if (code === "invalid_argument" || code === "already_exists") return JSON_RPC.invalidParams;
  return code === "internal" || code === "unknown" ? JSON_RPC.internalError : JSON_RPC.refused;
}

/** For a request that outlasts this process. */
export function stopped(goesOn: boolean): Failure {
  const then = goesOn
    ? "what was asked for goes on: send it again, with the id that it had"
    : "what was asked for was given up, and may have had effects";
  return new Failure("unavailable", `this gateway stops, and ${then}`, { reason: "INSTANCE_STOPPING" });
}

/** For a request that reaches no server of the SDK. */
export function refusalResponse(error: unknown, id: string | number | null, challenge: string): Response {
  if (error instanceof ProtocolError) {
    const { code, message, data } = error;
    return Response.json({ jsonrpc: "2.0", id, error: { code, message, data } }, { status: 400 });
  }
  const failure = failureFromConnectError(error);
  const status = isSessionGone(failure) ? 404 : statusOf(failure);
  const headers = new Headers();
  if (failure.code === "unauthenticated") headers.set("www-authenticate", challenge);
  const retryAfter = retryAfterOf(failure);
  if (retryAfter !== undefined) headers.set("retry-after", retryAfter);
  return Response.json({ jsonrpc: "2.0", id, error: rpcFailureFrom(failure) }, { status, headers });
}

/** Told of what is the suite's own fault. */
export type OnFault = (error: unknown, code: FailureCode) => void;

const FAULTS: ReadonlySet<FailureCode> = new Set(["internal", "unavailable", "unknown", "data_loss"]);

export function tellFault(error: unknown, onFault: OnFault): void {
  const { code } = failureFromConnectError(error);
  if (FAULTS.has(code)) onFault(error, code);
}

import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema, Reason } from "#gen/toolbus/error/v1/error_pb.ts";

/** Why a case of one code is what it is; a suite that is newer than this library may give its number. */
export type ReasonName = keyof typeof Reason | `${number}`;

/** What the suite refused, or could not do. */
export class ToolbusError extends Error {
  /** One of the sixteen codes of gRPC, as `not_found`. */
  readonly code: string;
  /** What to tell cases of one code apart by, as `AGENT_NOT_FOUND`; the contract says of each what to do next. */
  readonly reason: ReasonName;
  readonly metadata: Readonly<Record<string, string>>;

  constructor(message: string, details: Pick<ToolbusError, "code" | "reason"> & Partial<ToolbusError>) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "ToolbusError";
    this.code = details.code;
    this.reason = details.reason;
    this.metadata = details.metadata ?? {};
  }
}

/** Of what a call threw that went to an address; `fetch` itself says neither that nor what was wrong. */
export function errorOf(thrown: unknown, url?: string): ToolbusError {
  if (thrown instanceof ToolbusError) return thrown;
  const error = ConnectError.from(thrown);
  const detail = error.findDetails(ErrorDetailSchema)[0];
  const isOfFetch = url !== undefined && error.cause instanceof TypeError;
  return new ToolbusError(isOfFetch ? `${url} cannot be reached: ${rootOf(error.cause)}` : error.rawMessage, {
    code: wordOf(isOfFetch ? Code.Unavailable : error.code),
    reason: detail === undefined ? "UNSPECIFIED" : nameOf(detail.reason),
    metadata: detail?.metadata ?? {},
    cause: thrown,
  });
}

function rootOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined
    ? error.message || ("code" in error ? String(error.code) : error.name)
    : rootOf(error.cause);
}

function nameOf(reason: Reason): ReasonName {
  return nameFrom(Reason, reason) as ReasonName;
}

/** Of a value of an enum of the contract; its number when it is newer than this library. */
export function nameFrom(values: Readonly<Record<string, number>>, value: number): string {
  return Object.entries(values).find(([, one]) => one === value)?.[0] ?? `${value}`;
}

function wordOf(code: Code): string {
  return (Code[code] ?? "unknown").replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}

const broken = new Set([Code.Unknown, Code.Internal, Code.Unavailable, Code.Aborted, Code.DataLoss]);

/**
 * Whether the same may be answered a little later: the suite says so, or the way to it is broken, of which no answer of the suite
 * tells: those have a reason.
 */
export function isPassing(thrown: unknown): boolean {
  const error = ConnectError.from(thrown);
  const isTold = error.findDetails(ErrorDetailSchema).length > 0;
  if (isTold) return error.code === Code.Unavailable;
  // Connect over HTTP/2 calls requests canceled whose connection is closed; who aborts by itself is asked before
  return broken.has(error.code) || (error.code === Code.Canceled && !error.isWireError);
}

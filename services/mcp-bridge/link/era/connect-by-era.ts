import { SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { Failure } from "#runtime/failure/failure.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { refusalIn } from "../../servers/login-needed.ts";
import type { StartTime } from "../../servers/start-time.ts";
import { networkCodeOf } from "../outcome/outcome.ts";

/** How a server is spoken with; `sse` is by the transport of 2024-11-05, at a URL that names none. */
export type KnownEra = "legacy" | "modern" | "sse";

type Attempt<T> = (era: KnownEra | undefined, signal: AbortSignal) => Promise<T>;

interface Asked {
  known: KnownEra | undefined;
  isHttp: boolean;
  start: StartTime;
}

/**
 * The share of the time for starting after which a server that has said nothing is asked the other way, a local one in a process of
 * its own. One that is fetched may still be on its way: two fetches at once break the cache of npx.
 */
const SILENT_SHARE = 0.4;
const FETCHED_SILENT_SHARE = 0.75;
/** What servers of 2024-11-05 say to a message at the address of their stream. */
const NO_MESSAGES: ReadonlySet<number | undefined> = new Set([400, 404, 405]);

/**
 * Asks `server/discover`, on which a server of either era may answer, or end. Where what it says tells nothing, `initialize` decides,
 * of a local server in a process of its own: one that was asked the one way may refuse the other.
 */
export async function connectByEra<T extends AsyncDisposable>(
  attempt: Attempt<T>,
  { known, isHttp, start }: Asked,
  limit: AbortSignal,
): Promise<T> {
  using ending = openEnding(limit);
  const { signal } = ending;
  const orBySse = (link: Promise<T>) =>
    link.catch((error) => {
      if (signal.aborted || !isHttp || !NO_MESSAGES.has(statusIn(error))) throw error;
      return attempt("sse", signal).catch(() => Promise.reject(error));
    });
  if (known !== undefined) return await orBySse(attempt(known, signal));
  const first = attempt(undefined, signal).catch((error) => {
    if (signal.aborted || !(isHttp ? isUndecided(error) : isClosedInProbe(error))) throw error;
    return attempt("legacy", signal).catch((other) => Promise.reject(isHttp ? bothOf(error, other) : other));
  });
  const attempts = [orBySse(first), secondWay(attempt, first, start, signal)];
  try {
    const link = await Promise.any(attempts);
    for (const other of attempts) void closeOther(other, link);
    return link;
  } catch {
    return first; // rejects, with what is to be said
  } finally {
    ending.end(new Error("the server was asked another way"));
  }
}

async function closeOther<T extends AsyncDisposable>(other: Promise<T>, link: T): Promise<void> {
  const lost = await other.catch(() => undefined);
  if (lost !== undefined && lost !== link) await lost[Symbol.asyncDispose]();
}

/** Rejects when the first way has come to an end before. */
async function secondWay<T>(attempt: Attempt<T>, first: Promise<T>, start: StartTime, signal: AbortSignal): Promise<T> {
  const silentMs = start.ms * (start.installer === undefined ? SILENT_SHARE : FETCHED_SILENT_SHARE);
  const ended = Promise.allSettled([first]);
  if (await comesWithin(silentMs, unlessAborted(ended, signal))) throw new Error("the first way was answered");
  return attempt("legacy", signal);
}

/** An answer of HTTP that is none of MCP: older servers say whatever they like to what they do not know. */
function isUndecided(error: unknown): boolean {
  const found = probeErrorIn(error);
  return found !== undefined && networkCodeOf(found) === undefined && refusalIn(found) === undefined;
}

function isClosedInProbe(error: unknown): boolean {
  return /closed during/.test(probeErrorIn(error)?.message ?? "");
}

function probeErrorIn(error: unknown): SdkError | undefined {
  const found = cause(error);
  return found instanceof SdkError && found.code === SdkErrorCode.EraNegotiationFailed ? found : undefined;
}

function statusIn(error: unknown): number | undefined {
  const found = cause(error);
  return found instanceof SdkHttpError ? found.status : undefined;
}

/** What the SDK has said of an attempt that failed. */
function cause(error: unknown): unknown {
  return error instanceof Failure ? error.cause : undefined;
}

function bothOf(first: Error, other: Error): Error {
  if (first.message === other.message) return other;
  const text = `${first.message}; initialize, which older servers know: ${other.message}`;
  return new Failure("unavailable", text, { reason: "MCP_SERVER_UNAVAILABLE", cause: cause(other) });
}

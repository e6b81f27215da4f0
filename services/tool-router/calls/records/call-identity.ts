import { isDeepStrictEqual } from "node:util";
import { HEAVY_VALUES } from "#runtime/collections/turns/own-turn.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { hasMoreValues } from "#runtime/schema/json/json-size.ts";
import { digestOfArguments } from "../answers/record-size.ts";
import type { CallRecord } from "./record/call-record.ts";

/*
 * One id is one call: what comes under it again joins the first call or is given its result, and so has to ask for the same.
 * What is compared is what each place knows of a call: in flight its request, afterwards its record.
 */

export interface CallIdentity {
  readonly sessionId: string;
  readonly runId: string;
  /** Model name, alias or reference. */
  readonly name: string;
  readonly argumentsJson: string;
}

type Common = Pick<CallIdentity, "sessionId" | "runId" | "argumentsJson">;
type Recorded = Pick<CallRecord, "sessionId" | "runId" | "agent" | "tool" | "argumentsJson">;

/** In what two calls that came under one id differ; empty when they are the same. */
export function differencesOf(one: Recorded, other: Recorded): string[] {
  return differing(one, other, { agent: one.agent === other.agent, tool: one.tool === other.tool });
}

/** Likewise of two requests. */
export function differencesOfRequests(one: CallIdentity, other: CallIdentity): string[] {
  return differing(one, other, { tool: one.name === other.name });
}

/**
 * The same value in another spelling is the same; only what is spelled differently is parsed. A record may hold the digest of what
 * another holds whole: releases up to 0.2 recorded fewer arguments.
 */
export function isSameArguments(one: string, other: string): boolean {
  const [first, second] = [one || "{}", other || "{}"];
  if (first === second || first === digestOfArguments(second)) return true;
  if (hasMoreValues(first, HEAVY_VALUES) || hasMoreValues(second, HEAVY_VALUES)) return false; // nobody writes so many anew
  try {
    return isDeepStrictEqual(JSON.parse(first), JSON.parse(second));
  } catch {
    return false; // what is no JSON is the same as itself only
  }
}

export function refuseForeign(callId: string, differences: readonly string[]): never {
  const message = `the call id ${callId} belongs to another call, which differs in ${differences.join(", ")}`;
  return refuse("already_exists", message, {
    reason: "CALL_ID_REUSED",
    metadata: { call_id: callId, differences: differences.join(",") },
  });
}

/** A session is one principal's: whoever guesses at a call of another one is not told what was right. */
function differing(one: Common, other: Common, named: Record<string, boolean>): string[] {
  if (one.sessionId !== other.sessionId) return ["session"];
  const hasSameArguments = isSameArguments(one.argumentsJson, other.argumentsJson);
  const sameness = { run: one.runId === other.runId, ...named, arguments: hasSameArguments };
  return Object.entries(sameness).flatMap(([part, isSame]) => (isSame ? [] : [part]));
}

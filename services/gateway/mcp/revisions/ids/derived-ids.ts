import { createHmac, type KeyObject } from "node:crypto";
import type { RequestId } from "@modelcontextprotocol/server";

/*
 * Ids that every gateway of a suite derives alike, so that none has to remember them. They take the key that the gateways share: whoever
 * could compute another's id could use it first, and learn by it what the other does.
 */

export interface StandingPlace {
  readonly principal: string;
  readonly agent: string;
  /** How many earlier ones cannot be used. */
  readonly place: number;
}

export function idOfStanding(key: KeyObject, { principal, agent, place }: StandingPlace): string {
  return `mcp-${derived(key, ["session", principal, agent, place]).slice(0, 32)}`;
}

export interface CallOfSession {
  readonly principal: string;
  readonly sessionId: string;
  /** Of the JSON-RPC request. */
  readonly id: RequestId;
}

/** mcp-2 */
export function callIdOf(key: KeyObject, { principal, sessionId, id }: CallOfSession): string {
  return `mcp-${derived(key, ["call", principal, sessionId, id])}`;
}

function derived(key: KeyObject, parts: readonly (string | number)[]): string {
  return createHmac("sha256", key).update(JSON.stringify(parts)).digest("base64url");
}

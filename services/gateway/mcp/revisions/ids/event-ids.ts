import { randomBytes } from "node:crypto";
import type { ProgressToken } from "@modelcontextprotocol/server";
import { z } from "zod";
import { jsonFromText } from "../../../plain/exchange.ts";
import type { AskedCall } from "../../agent/agent-server.ts";

/**
 * What `Last-Event-ID` says, so that no gateway has to remember it (mcp-3): of the stream of a call, what was called; of the
 * stream of a session, what it was told of last. A client could ask the same anew: it needs no signature.
 */
export type Place =
  | { readonly kind: "call"; readonly call: PlacedCall }
  | { readonly kind: "tools"; readonly digest: string };

export interface PlacedCall extends Pick<AskedCall, "id" | "name"> {
  /** Of its session alone: elsewhere the same request would be another call. Earlier releases left it out. */
  readonly callId?: string;
  /** Left out where they are too long for a header: the call's record has them. */
  readonly argumentsJson?: string;
  readonly progressToken?: ProgressToken;
  /** What was asked of it as a task. */
  readonly task?: { readonly ttl?: number };
}

const MAX_ARGUMENTS = 2_048;

export function eventIdOfCall({ callId, id, name, argumentsJson = "", progressToken, task }: PlacedCall): string {
  const isShort = argumentsJson.length <= MAX_ARGUMENTS;
  const place = { callId, id, name, progressToken, task, ...(isShort && { argumentsJson }) };
  return unique(`call.${Buffer.from(JSON.stringify(place)).toString("base64url")}`);
}

export function eventIdOfTools(digest: string): string {
  return unique(`tools.${digest}`);
}

/** Each event of a session has an id of its own, also two at one place. */
function unique(place: string): string {
  return `${place}.${randomBytes(6).toString("base64url")}`;
}

/** Undefined for what is no place of a stream of this door. */
export function placeFromEventId(eventId: string): Place | undefined {
  const [kind, rest = ""] = eventId.split(".", 2);
  if (kind === "tools") return { kind, digest: rest };
  const call = kind === "call" ? callFrom(rest) : undefined;
  return call && { kind: "call", call };
}

const echoed = z.union([z.string(), z.number()]);
const placed = z.object({
  callId: z.string().exactOptional(),
  id: echoed,
  name: z.string(),
  argumentsJson: z.string().exactOptional(),
  progressToken: echoed.exactOptional(),
  task: z.object({ ttl: z.number().exactOptional() }).exactOptional(),
});

function callFrom(text: string): PlacedCall | undefined {
  try {
    const call = placed.parse(JSON.parse(Buffer.from(text, "base64url").toString("utf8")));
    jsonFromText(call.argumentsJson || "{}"); // whoever writes one by hand may write anything
    return call;
  } catch {
    return undefined;
  }
}

import { hash } from "node:crypto";
import { clone, toBinary } from "@bufbuild/protobuf";
import { type McpServer, McpServerSchema, Share } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { Scope } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { refuse } from "#runtime/failure/failure.ts";

/** Whom a connection belongs to: nobody in particular where a part is empty. */
export interface Holder {
  sessionId: string;
  agent: string;
  /** The run that brought the server; empty for one that an agent declares or that was applied. */
  runId: string;
}

/** `share` widens the holder: to all sessions of an agent, or to everybody. What a run brought is that run's. */
export function holderOf(
  server: McpServer,
  scope: Pick<Scope, "sessionId" | "agent" | "runId"> | undefined,
  isOfRun = false,
): Holder {
  const { sessionId = "", agent = "", runId = "" } = scope ?? {};
  if (isOfRun) return { sessionId, agent, runId: requireRun(runId) };
  if (server.share === Share.GLOBAL) return { sessionId: "", agent: "", runId: "" };
  if (server.share === Share.AGENT) return { sessionId: "", agent, runId: "" };
  return { sessionId, agent, runId: "" };
}

function requireRun(runId: string): string {
  return (
    runId ||
    refuse("invalid_argument", "a server that a run brings is asked for by the run", { reason: "INVALID_REQUEST" })
  );
}

/** One connection a key. Secrets are not resolved in it. */
export function keyOf(server: McpServer, holder: Holder): string {
  const owner = JSON.stringify([server.share, holder.sessionId, holder.agent, holder.runId]);
  return hash("sha256", Buffer.concat([Buffer.from(owner), bytesOf(server)]), "base64url").slice(0, 32);
}

const bytesByServer = new WeakMap<McpServer, Uint8Array>();

/** Worked out once a server, of which there are many calls. */
const bytesOf = (server: McpServer): Uint8Array =>
  getOrInsertComputed(bytesByServer, server, () => toBinary(McpServerSchema, withTransportMap(server, sorted)));

/** A copy, in which the variables or headers of the transport are what `change` makes of them. */
export function withTransportMap(server: McpServer, change: (map: StringMap) => StringMap): McpServer {
  const copy = clone(McpServerSchema, server);
  const { case: arm, value } = copy.transport;
  if (arm === "stdio") value.env = change(value.env);
  else if (arm !== undefined) value.headers = change(value.headers);
  return copy;
}

type StringMap = Record<string, string>;

/** Maps have no order in protobuf, but their bytes do. */
function sorted(map: StringMap): StringMap {
  return Object.fromEntries(Object.entries(map).sort(([left], [right]) => (left < right ? -1 : 1)));
}

import { equals } from "@bufbuild/protobuf";
import { McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { AppliedServers } from "../servers/servers.ts";
import type { Connections } from "./connections.ts";

export interface DeletedServersParts {
  applied: Pick<AppliedServers, "changes" | "list">;
  connections: Pick<Connections, "releaseServer">;
  signal: AbortSignal;
  onError: (error: unknown) => void;
}

/**
 * Closes what this instance has of a server as soon as the server is deleted or applied anew, held or not: a connection that is
 * left to idle would start a server again and again that nobody has any more. Each instance does so for its own. Whoever
 * still follows the server by its name is told that there is none, or gets what was applied since.
 */
export async function closeDeleted({ applied, connections, signal, onError }: DeletedServersParts): Promise<void> {
  const standing = () =>
    new Map(applied.list().flatMap(({ server }) => (server ? [[server.name, server] as const] : [])));
  for (let known = standing(); !signal.aborted; ) {
    using change = applied.changes.next();
    const now = standing();
    for (const [name, server] of known) {
      const next = now.get(name);
      const isSame = next !== undefined && equals(McpServerSchema, server, next);
      if (!isSame) await connections.releaseServer(server).catch(onError);
    }
    known = now;
    await unlessAborted(change.happened, signal).catch(() => {}); // the loop looks at the signal itself
  }
}

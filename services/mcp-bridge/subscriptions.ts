import { create, equals } from "@bufbuild/protobuf";
import { type McpServer, McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { type StoredMcpServer, StoredMcpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { codecOf } from "#runtime/bus/buckets/bucket.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { openBucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { unlessStalled } from "#runtime/bus/link/storage.ts";
import { requireRevision } from "#runtime/failure/expected-revision.ts";
import type { Logger } from "#runtime/lifecycle/logger.ts";
import type { AppliedServers } from "./servers/servers.ts";

const PLACE = { bucket: "toolbus_tools", prefix: "mcp-server.", codec: codecOf(McpServerSchema) } as const;

/** Names may hold dots where keys must not have empty parts; no name holds a slash. */
function keyOf(name: string): string {
  return name.replaceAll(".", "/");
}

/** The applied servers, read whole before this resolves and followed from then on. */
export async function openAppliedServers(bus: Bus, logger: Logger): Promise<AppliedServers & AsyncDisposable> {
  const bucket = createBucket(bus, PLACE);
  const followed = await openBucketView(bucket, (fault) => logger.error(fault));
  const { view } = followed;
  return {
    changes: view.changes,
    caughtUp: (signal) => unlessStalled(bus.link.storage, () => followed.caughtUp(signal)),
    list: () => view.entries.map(([, { value, revision }]) => storedFrom(value, revision)),
    find: (name) => view.get(keyOf(name))?.value,
    async read(name, signal) {
      const found = await bucket.read(keyOf(name), signal);
      return found && storedFrom(found.value, found.revision);
    },
    async apply(server, { expectedRevision: expected, validateOnly, signal }) {
      const decide = (standing: McpServer | undefined, revision: number) => {
        requireRevision({ what: "MCP server", name: server.name, revision, expected });
        const isSame = standing !== undefined && equals(McpServerSchema, standing, server);
        return validateOnly || isSame ? undefined : server;
      };
      const { revision, hasChanged } = await bucket.update(keyOf(server.name), decide, signal);
      await view.reached(revision, signal);
      return { stored: storedFrom(server, revision), hasChanged };
    },
    async remove(name, { expectedRevision: expected, signal }) {
      const decide = (_: McpServer, revision: number) => {
        requireRevision({ what: "MCP server", name, revision, expected });
        return true;
      };
      // on no condition, one that cannot be read goes as well
      const isRemoved = await bucket.remove(keyOf(name), expected === undefined ? undefined : decide, signal);
      if (isRemoved) await followed.caughtUp(signal);
      return isRemoved;
    },
    [Symbol.asyncDispose]: () => followed[Symbol.asyncDispose](),
  };
}

/** All servers come from who applied them. */
function storedFrom(server: McpServer, revision: number): StoredMcpServer {
  return create(StoredMcpServerSchema, { server, revision: BigInt(revision), origin: "rpc" });
}

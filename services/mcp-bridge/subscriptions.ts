import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type McpServer, McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { type StoredMcpServer, StoredMcpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { casUpdate, type Decision, readKey, removeKey } from "#runtime/bus/buckets/key-value.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { followSubject, lastSequenceOf, readSubject, type StoredMessage } from "#runtime/bus/streams/read.ts";
import { requireRevision } from "#runtime/failure/expected-revision.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Logger } from "#runtime/lifecycle/logger.ts";
import { createChanges, orAborted } from "./servers/changes.ts";
import type { AppliedServers } from "./servers/servers.ts";

const BUCKET = "toolbus_tools";
const PREFIX = "mcp-server.";

/** Names may hold dots where keys must not have empty parts; no name holds a slash. */
function keyOf(name: string): string {
  return PREFIX + name.replaceAll(".", "/");
}

interface Followed {
  /** Undefined once it was removed. */
  server: McpServer | undefined;
  sequence: number;
}

/** The applied servers, read whole before this resolves and followed from then on. */
export async function openAppliedServers(bus: Bus, logger: Logger): Promise<AppliedServers & AsyncDisposable> {
  const subject = `$KV.${BUCKET}.${PREFIX}>`;
  const changes = createChanges();
  const progress = createChanges();
  const stored = new Map<string, Followed>();
  const closing = new AbortController();
  let last = 0;

  function take(key: string, { server, sequence }: Followed): void {
    if ((stored.get(key)?.sequence ?? 0) >= sequence) return;
    stored.set(key, { server, sequence });
    changes.tell();
  }

  function takeMessage(message: StoredMessage): void {
    last = Math.max(last, message.sequence);
    const key = message.subject.slice(`$KV.${BUCKET}.`.length);
    take(key, { server: serverFromMessage(message, logger), sequence: message.sequence });
    progress.tell();
  }

  for await (const message of readSubject(bus, subject, { signal: closing.signal })) takeMessage(message);
  const follow = async () => {
    const options = { fromSequence: last + 1, signal: closing.signal };
    for await (const message of followSubject(bus, subject, options)) takeMessage(message);
  };
  const following = follow().catch((error: unknown) =>
    logger.error({ err: error }, `applied servers are not followed any more: ${messageFromUnknown(error)}`),
  );

  return {
    changes,
    async caughtUp(signal) {
      const upTo = await lastSequenceOf(bus, subject, signal);
      for (let next = progress.next(); last < upTo; next = progress.next()) await orAborted(next, signal);
    },
    list: () => [...stored.values()].flatMap(({ server, sequence }) => (server ? [toldAs(server, sequence)] : [])),
    find: (name) => stored.get(keyOf(name))?.server,
    async read(name, signal) {
      const entry = await readKey(bus, BUCKET, keyOf(name), { signal });
      return entry && toldAs(fromBinary(McpServerSchema, entry.value), entry.revision);
    },
    async apply(server, { expectedRevision: expected, validateOnly, signal }) {
      const key = keyOf(server.name);
      const set = toBinary(McpServerSchema, server);
      const decide = (entry: { revision: number; value: Uint8Array } | undefined): Decision<number> => {
        const revision = entry?.revision ?? 0;
        requireRevision({ what: "MCP server", name: server.name, revision, expected });
        const isSame = entry !== undefined && Buffer.compare(entry.value, set) === 0;
        return validateOnly || isSame ? { keep: true, result: revision } : { set, result: 0 };
      };
      const { result, revision } = await casUpdate(bus, BUCKET, key, decide, { signal });
      const standing = result || (validateOnly ? 0 : revision);
      if (!validateOnly) take(key, { server, sequence: standing });
      return toldAs(server, standing);
    },
    async remove(name, { expectedRevision: expected, signal }) {
      const key = keyOf(name);
      for (;;) {
        const entry = await readKey(bus, BUCKET, key, { signal });
        if (!entry) return false;
        requireRevision({ what: "MCP server", name, revision: entry.revision, expected });
        if (!(await removeKey(bus, { bucket: BUCKET, key, revision: entry.revision, signal }))) continue;
        take(key, { server: undefined, sequence: entry.revision + 1 });
        return true;
      }
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await following;
    },
  };
}

/** All servers come from who applied them. */
function toldAs(server: McpServer, revision: number): StoredMcpServer {
  return create(StoredMcpServerSchema, { server, revision: BigInt(revision), origin: "rpc" });
}

/** Undefined for one that was removed, and for one that cannot be read. */
function serverFromMessage(message: StoredMessage, logger: Logger): McpServer | undefined {
  if (message.headers?.get("KV-Operation") || message.headers?.get("Nats-Marker-Reason")) return undefined;
  try {
    return fromBinary(McpServerSchema, message.data);
  } catch (error) {
    logger.warn(`the server stored under ${message.subject} cannot be read: ${messageFromUnknown(error)}`);
    return undefined;
  }
}

/** The instances of a service that answer, as `nats micro ping` finds them: those that do so within moments. */
export async function findInstances(bus: Bus, service: string, signal: AbortSignal): Promise<string[]> {
  const found = new Set<string>();
  const answers = await bus.connection.requestMany(`$SRV.PING.${service}`, "", {
    strategy: "stall",
    stall: 100,
    maxWait: 1_000,
  });
  for await (const answer of answers) {
    signal.throwIfAborted();
    const { metadata } = answer.json<{ metadata?: { instance?: unknown } }>();
    if (typeof metadata?.instance === "string") found.add(metadata.instance);
  }
  return [...found];
}

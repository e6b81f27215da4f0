import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { pino } from "pino";
import { McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { createAddressGuard } from "#runtime/http/address-guard.ts";
import { Connection, type ConnectionCall } from "../connection/connection.ts";
import { createOpener } from "../connection/open.ts";
import type { TransportModule } from "../transport/module.ts";
import { createTransportRegistry } from "../transport/registry.ts";
import { type EventTold, eventsOf } from "./events.ts";

export const oddServer = new URL("./servers/odd-server.ts", import.meta.url).pathname;

/** The odd server in these modes, as a source describes it. */
export function oddServerIn(...modes: string[]) {
  return { name: "odd", command: process.execPath, args: [oddServer, ...modes] };
}

export interface ConnectionFixtureOptions {
  secrets?: Record<string, string>;
  environment?: Record<string, string>;
  maxMessageBytes?: number;
  idleTimeoutMs?: number;
  onIdle?: () => void;
  transports?: TransportModule[];
}

/** A connection as the bridge makes it, without a bus. */
export function openConnection(
  server: MessageInitShape<typeof McpServerSchema>,
  options: ConnectionFixtureOptions = {},
): Connection {
  const {
    secrets = {},
    environment = {},
    maxMessageBytes = 64 * 2 ** 20,
    idleTimeoutMs = 600_000,
    onIdle = () => {},
  } = options;
  const logger = pino({ level: "silent" });
  const message = create(McpServerSchema, server);
  const findTransport = createTransportRegistry(options.transports);
  const opener = createOpener({
    findTransport,
    secrets: new Map(Object.entries(secrets)),
    environment,
    maxMessageBytes,
    logger,
    runGuard: createAddressGuard([]),
  });
  const holder = { sessionId: "s1", agent: "a1", runId: "" };
  return new Connection({
    server: message,
    holder,
    instance: "test",
    startupTimeoutMs: 15_000,
    idleTimeoutMs,
    logger,
    open: opener({ server: message, holder }),
    onIdle,
    onChange: () => {},
  });
}

let calls = 0;

export function startCall(
  connection: Connection,
  tool: string,
  args: unknown = {},
  options: Partial<ConnectionCall> = {},
) {
  return connection.call({
    callId: `c${calls++}`,
    sessionId: "s1",
    tool,
    argumentsJson: JSON.stringify(args),
    deadlineMs: Date.now() + 15_000,
    signal: new AbortController().signal,
    ...options,
  });
}

export async function callThrough(
  connection: Connection,
  tool: string,
  args: unknown = {},
  options: Partial<ConnectionCall> = {},
): Promise<EventTold> {
  return eventsOf(startCall(connection, tool, args, options));
}

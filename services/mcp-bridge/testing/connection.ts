import { create, fromJson, type MessageInitShape } from "@bufbuild/protobuf";
import { pino } from "pino";
import { type McpServer, McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { agentSpelling } from "#runtime/agent-file/agent-spelling.ts";
import { contractJson } from "#runtime/agent-file/spelling.ts";
import { createRedaction } from "#runtime/content/redaction.ts";
import { createAddressGuard } from "#runtime/http/address-guard.ts";
import { createInSpan } from "#runtime/telemetry/in-span.ts";
import { Calls } from "../connection/calls.ts";
import { Connection, type ConnectionCall } from "../connection/connection.ts";
import { createOpener } from "../connection/open.ts";
import { Starts } from "../connection/starts.ts";
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
  /** Whose connection it is; empty for one that sessions share. */
  sessionId?: string;
  transports?: TransportModule[];
  /** Told what is logged as a warning. */
  onWarning?: (text: string) => void;
}

/** A server with the fields of its transport beside its name, as files write it. */
type ServerFixture = Omit<Exclude<MessageInitShape<typeof McpServerSchema>, McpServer>, "transport"> & {
  command?: string;
  args?: string[];
  env?: Record<string, string>;
  url?: string;
  headers?: Record<string, string>;
  transport?: string;
};

export function serverFrom({ command, args, env, url, headers, transport, ...rest }: ServerFixture): McpServer {
  const file = JSON.parse(JSON.stringify({ command, args, env, url, headers, transport }));
  const json = contractJson(McpServerSchema, file, agentSpelling);
  return create(McpServerSchema, { ...rest, transport: fromJson(McpServerSchema, json).transport });
}

/** A connection as the bridge makes it, without a bus. */
export function openConnection(server: ServerFixture, options: ConnectionFixtureOptions = {}): Connection {
  const {
    secrets = {},
    environment = {},
    maxMessageBytes = 64 * 2 ** 20,
    idleTimeoutMs = 600_000,
    onIdle = () => {},
  } = options;
  const { onWarning } = options;
  const write = (line: string) => onWarning?.(JSON.parse(line).msg);
  const logger = pino({ level: onWarning ? "warn" : "silent" }, { write });
  const message = serverFrom(server);
  const findTransport = createTransportRegistry(options.transports);
  const redact = createRedaction(new Map(Object.entries(secrets)));
  const opener = createOpener({
    findTransport,
    secrets: new Map(Object.entries(secrets)),
    environment,
    confinement: undefined, // inside of one, processes have other ids than those that tests look at
    maxMessageBytes,
    logger,
    redact,
    runGuard: createAddressGuard([]),
    starts: new Starts(),
    inSpan: createInSpan(undefined),
  });
  const holder = { sessionId: options.sessionId ?? "s1", agent: "a1", runId: "" };
  return new Connection({
    server: message,
    holder,
    principal: "",
    instance: "test",
    startupTimeoutMs: 15_000,
    installTimeoutMs: 60_000,
    idleTimeoutMs,
    logger,
    redact,
    calls: new Calls(),
    open: opener({ server: message, holder, principal: "" }),
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
    principal: "p1",
    tool,
    argumentsJson: JSON.stringify(args),
    deadlineMs: Date.now() + 15_000,
    accepted: [],
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

import { randomBytes } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { pino } from "pino";
import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { instanceService } from "#runtime/bus/ownership/ownership.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { clientFor } from "../../clients.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";
import { oddServer } from "./connection.ts";
import { type EventTold, eventsOf } from "./events.ts";

export interface BridgeClients {
  readonly instance: string;
  readonly provider: Client<typeof ToolProviderService>;
  readonly servers: Client<typeof McpServerService>;
  readonly content: Client<typeof McpContentService>;
}

/** The whole service in this process, and clients that reach this instance. */
export interface Bridge extends BridgeClients, AsyncDisposable {}

export function environmentFor(bus: TestBus, instance: string): Record<string, string> {
  return {
    NATS_URL: bus.server.url,
    TOOLBUS_BUS_CREDENTIALS: bus.server.credentials,
    TOOLBUS_INSTANCE: instance,
    TOOLBUS_MCP_STARTUP_TIMEOUT: "15s",
    TOOLBUS_CONFINEMENT: "off", // inside of one, processes have other ids than those that tests look at
    PATH: process.env.PATH ?? "",
  };
}

export async function openBridge(bus: TestBus, env: Record<string, string> = {}): Promise<Bridge> {
  const instance = randomBytes(3).toString("hex");
  const stopping = new AbortController();
  const service = await openService(readConfig({ ...environmentFor(bus, instance), ...env }), {
    name: "mcp-bridge",
    instance,
    logger: pino({ level: process.env.TOOLBUS_TEST_LOG ?? "silent" }),
    signal: stopping.signal,
    telemetry: await openTelemetry({ service: "mcp-bridge" }),
  });
  return {
    ...clientsOf(bus, instance),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

/** A bus with two instances of the bridge, each reached by itself. */
export interface TwoBridges extends AsyncDisposable {
  readonly bus: TestBus;
  readonly left: Bridge;
  readonly right: Bridge;
}

export async function openTwoBridges(): Promise<TwoBridges> {
  const bus = await openTestBus();
  const [left, right] = await Promise.all([openBridge(bus), openBridge(bus)]);
  return {
    bus,
    left,
    right,
    async [Symbol.asyncDispose]() {
      await Promise.all([left[Symbol.asyncDispose](), right[Symbol.asyncDispose]()]);
      await bus[Symbol.asyncDispose]();
    },
  };
}

/** Clients of one instance, wherever it runs. */
export function clientsOf(bus: TestBus, instance: string): BridgeClients {
  const room = instanceService("mcp-bridge", instance);
  const provider = clientFor(bus, ToolProviderService, { process: room });
  const servers = clientFor(bus, McpServerService, { process: room });
  return { instance, provider, servers, content: clientFor(bus, McpContentService, { process: room }) };
}

/** The odd server as an agent declares it. */
export function oddSource(name: string, modes: string[] = [], more: JsonObject = {}) {
  return { name, config: { command: process.execPath, args: [oddServer, ...modes], ...more } };
}

export const scope = { sessionId: "s1", agent: "a1" };

let calls = 0;

/** A call of its own id, and all that it tells. */
export function call(
  bridge: BridgeClients,
  source: object,
  tool: string,
  args: object = {},
  more: object = {},
): Promise<EventTold> {
  const request = {
    callId: `call-${calls++}`,
    scope,
    source,
    tool,
    argumentsJson: JSON.stringify(args),
    deadline: timestampFromMs(Date.now() + 15_000),
    ...more,
  };
  return eventsOf(bridge.provider.executeTool(request));
}

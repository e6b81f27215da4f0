import type { KeyObject } from "node:crypto";
import type { DescService } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { Health as HealthService } from "#gen/health/v1/health_pb.ts";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { readSharedKey } from "#runtime/bus/buckets/shared-key.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { openServiceBus } from "#runtime/bus/credentials/service-bus.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { OpenService, ServiceContext } from "#runtime/lifecycle/run-service.ts";
import { createAccess } from "#runtime/rpc/access/rules.ts";
import { transportOnBus } from "#runtime/rpc/bus/client.ts";
import { type BodyLimits, createSenderBytes } from "#runtime/rpc/http/body/request-body.ts";
import type { PathTaker } from "#runtime/rpc/http/messages.ts";
import { type HttpServer, serveOnHttp } from "#runtime/rpc/http/server.ts";
import { principalOf } from "#runtime/rpc/identity.ts";
import { clientInterceptors, serverInterceptors } from "#runtime/rpc/interceptors.ts";
import { contractValidation } from "#runtime/rpc/validation.ts";
import { ACCESS } from "../access.ts";
import { clientFor } from "../clients.ts";
import { processOf, publicServices } from "../processes.ts";
import { type CertificatePaths, followCertificate, readCertificate } from "./access/certificate.ts";
import { createCrossOrigin } from "./access/cross-origin.ts";
import { guardHost } from "./access/host-guard.ts";
import { type Access, openAccess } from "./access/open-access.ts";
import type { GatewayConfig } from "./config.ts";
import { createComponents } from "./console/components.ts";
import { createConsolePaths, readConsoleFiles } from "./console/console-files.ts";
import { createHealth, type Health, type IsServing } from "./health.ts";
import { createResourceMetadata } from "./mcp/http/resource-metadata.ts";
import { createMcpDoor } from "./mcp/mcp-door.ts";
import { McpSessions } from "./mcp/revisions/sessions.ts";
import { HeldCalls } from "./mcp/tasks/held-calls.ts";
import type { Door } from "./plain/door.ts";
import { createLoginPaths } from "./plain/logins/logins.ts";
import { createPlainPaths } from "./plain/plain-paths.ts";
import { followStorageFaults } from "./plain/storage-faults.ts";
import { createToolCallDoor } from "./plain/tool-calls.ts";
import { createReflection } from "./reflection.ts";
import { createResponsesDoor } from "./responses/responses-door.ts";
import { createRoutes } from "./routes.ts";

/** How long a service may take to say that it is there, in milliseconds. */
const pingTimeoutMs = 1_000;

/** How long a stop waits for calls; shorter than elsewhere, as there is always somebody who watches something. */
const drainTimeoutMs = 5_000;

export async function openService(config: GatewayConfig, context: ServiceContext): Promise<OpenService> {
  const { logger, telemetry, signal: stopping } = context;
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openServiceBus(config, context, ACCESS.gateway.stores));
  const storageFault = followStorageFaults(bus);
  const isServing = pingOn(bus);
  const health = createHealth({ services: publicServices, processOf, isServing, storageFault, intervalMs: 1_000 });
  const access = stack.use(await openAccess(config, bus, (fault) => logger.warn(fault)));
  const { enter } = access;
  const services = servicesOn(bus, telemetry);
  const stateKey = await readSharedKey(bus, { bucket: "toolbus_gateway_keys", name: "mcp-request-states" });
  const holdFor = createSenderBytes(config.maxHeldBytes, config.maxStrangerBytes);
  const doors = createDoors({ config, holdFor, context, access, services, health, stateKey });
  const isOpen = config.auth === "none";
  const logins = createLoginPaths({
    servers: services.client(McpServerService),
    enter,
    publicUrl: config.publicUrl,
    isOpen,
  });
  const console = await openConsole(config, logger);
  const metricsText = () => telemetry.metricsText();
  const crossOrigin = createCrossOrigin(config.corsOrigins);
  if (!config.isLoopback && config.tls === undefined) {
    logger.warn(
      "keys and messages cross the network in plain text: set TOOLBUS_TLS_CERT_FILE, or put a proxy with TLS in front",
    );
  }
  const tls = config.tls && (await readCertificate(config.tls));
  const server = stack.use(
    await serveOnHttp({
      ...(tls && { tls }),
      host: config.host,
      port: config.port,
      routes: createRoutes({
        transportOf: services.transportTo,
        health,
        reflection: createReflection([...publicServices, HealthService, ServerReflection]),
        stopping,
      }),
      interceptors: [...serverInterceptors({ logger, telemetry, fromOutside: true }), contractValidation],
      readMaxBytes: config.maxRequestBytes,
      body: { holdFor },
      connectionsOfAddress: config.shares.connections,
      before(request, response) {
        response.setHeader("x-accel-buffering", "no"); // nginx would hold a stream back until it has ended
        return (isOpen && guardHost(request, response)) || crossOrigin(request, response);
      },
      admit: access.admit,
      fallback: createPlainPaths({ enter, storageFault, logins, console, metricsText, telemetry, doors }),
      logger,
      drainTimeoutMs,
    }),
  );
  if (config.tls) stack.use(followRenewal(config.tls, server, logger));
  const owned = stack.move();
  return { announcement: { url: server.url }, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** By the micro protocol's ping: whichever instance of the service is first says that one is there. */
function pingOn({ connection }: Bus): IsServing {
  return async (process) => {
    try {
      await connection.request(`$SRV.PING.${process}`, "", { timeout: pingTimeoutMs });
      return true;
    } catch {
      return false; // nobody answers, or nobody can be asked: either way a call would fail
    }
  };
}

/** The services behind the gateway. It asks for whom it has let in, and never for itself. */
function servicesOn(bus: Bus, telemetry: ServiceContext["telemetry"]) {
  const caller = () => undefined;
  const interceptors = [createAccess(), ...clientInterceptors({ telemetry })];
  const transport = (process: string, before: Interceptor[]) =>
    transportOnBus(bus, { process, interceptors: [...before, ...interceptors], caller, sendsExpiry: false });
  return {
    transportTo: (process: string) => transport(process, []),
    /** For requests that no server of this process has validated. */
    validatedTransportOf: (service: DescService) => transport(processOf(service), [contractValidation]),
    client: <S extends DescService>(service: S) => clientFor(bus, service, { interceptors, caller }),
  };
}

interface DoorParts {
  readonly config: GatewayConfig;
  readonly holdFor: BodyLimits["holdFor"];
  readonly context: ServiceContext;
  readonly access: Access;
  readonly services: ReturnType<typeof servicesOn>;
  readonly health: Health;
  readonly stateKey: KeyObject;
}

/** What clients speak that speak no RPC. */
function createDoors({ config, holdFor, context, access, services, health, stateKey }: DoorParts): Door[] {
  const { logger, telemetry, signal: stopping } = context;
  const { client } = services;
  const warn = (what: string) => (err: unknown) => logger.warn({ err }, `${what}: ${messageFromUnknown(err)}`);
  const calls = client(ToolCallService);
  const agents = client(AgentService);
  const common = { enter: access.enter, maxBytes: config.maxRequestBytes, stopping };
  return [
    createMcpDoor({
      ...common,
      stateKey,
      tools: client(ToolService),
      calls,
      agents,
      content: client(McpContentService),
      health,
      transportOf: services.validatedTransportOf,
      sessions: new McpSessions(client(SessionService), stateKey),
      held: new HeldCalls(),
      inSpan: telemetry.inSpan,
      takeCall: (caller) => access.shares.take(principalOf(caller), "calls"),
      metadata: createResourceMetadata(config),
      onFault: warn("answering an MCP client failed"),
    }),
    createResponsesDoor({
      ...common,
      enterAgain: access.enterAgain,
      holdFor,
      runs: client(RunService),
      agents,
      onFault: warn("answering a client of responses failed"),
    }),
    createToolCallDoor({ ...common, calls }),
  ];
}

async function openConsole(config: GatewayConfig, logger: ServiceContext["logger"]): Promise<PathTaker> {
  const directory = config.componentsDirectory;
  const onMissing = () => logger.info(`there is no folder ${directory}: components are served after a start with one`);
  return createConsolePaths({
    files: await readConsoleFiles(),
    login: config.consoleLogin,
    components: createComponents(directory, onMissing),
  });
}

function followRenewal(paths: CertificatePaths, server: HttpServer, logger: ServiceContext["logger"]): Disposable {
  return followCertificate(paths, {
    onRenewed(files) {
      server.renewCertificate(files);
      logger.info("the certificate was renewed");
    },
    onFault: (err) =>
      logger.warn({ err }, `the certificate is not renewed, and the one before holds on: ${messageFromUnknown(err)}`),
  });
}

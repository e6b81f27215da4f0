import type { DescService } from "@bufbuild/protobuf";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { Health as HealthService } from "#gen/health/v1/health_pb.ts";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { openBucketView } from "#runtime/bus/buckets/bucket-view.ts";
import { readSharedKey } from "#runtime/bus/buckets/shared-key.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { openServiceBus } from "#runtime/bus/credentials/service-bus.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { OpenService, ServiceContext } from "#runtime/lifecycle/run-service.ts";
import { grantBucket } from "#runtime/rpc/access/grantees.ts";
import { createAccess } from "#runtime/rpc/access/rules.ts";
import { subjectTokens, wantedSubjects } from "#runtime/rpc/access/tokens/subject-tokens.ts";
import { transportOnBus } from "#runtime/rpc/bus/client.ts";
import { serveOnHttp, type TlsFiles } from "#runtime/rpc/http/server.ts";
import { principalOf } from "#runtime/rpc/identity.ts";
import { clientInterceptors, serverInterceptors } from "#runtime/rpc/interceptors.ts";
import { contractValidation } from "#runtime/rpc/validation.ts";
import { ACCESS } from "../access.ts";
import { clientFor } from "../clients.ts";
import { processOf, publicServices } from "../processes.ts";
import { createAdmission, createEnter, createEnterAgain } from "./access/admission.ts";
import { createAuthenticate } from "./access/authentication/authentication.ts";
import { createGrantRecords } from "./access/authentication/grant-records.ts";
import { HeldTokens } from "./access/authentication/held-tokens.ts";
import { followCertificate, readCertificate } from "./access/certificate.ts";
import { createCrossOrigin } from "./access/cross-origin.ts";
import { guardHost } from "./access/host-guard.ts";
import { ContentionLimiter } from "./access/shares/contention-limiter.ts";
import { Shares } from "./access/shares/shares.ts";
import { UnreadAnswers } from "./access/shares/unread-answers.ts";
import type { GatewayConfig } from "./config.ts";
import { createComponents } from "./console/components.ts";
import { createConsolePaths, readConsoleFiles } from "./console/console-files.ts";
import { createHealth, type IsServing } from "./health.ts";
import { McpSessions } from "./mcp/eras/sessions.ts";
import { createResourceMetadata } from "./mcp/http/resource-metadata.ts";
import { createMcpDoor } from "./mcp/mcp-door.ts";
import { HeldCalls } from "./mcp/tasks/held-calls.ts";
import { createLoginPaths } from "./plain/logins.ts";
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

/** It asks for whom it has let in, and never for itself. */
const nobody = () => undefined;

export async function openService(config: GatewayConfig, context: ServiceContext): Promise<OpenService> {
  const { logger, telemetry } = context;
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openServiceBus(config, context, ACCESS.gateway.stores));
  // The micro protocol's ping: whichever instance of the service is first says that one is there.
  const isServing: IsServing = async (process) => {
    try {
      await bus.connection.request(`$SRV.PING.${process}`, "", { timeout: pingTimeoutMs });
      return true;
    } catch {
      return false; // nobody answers, or nobody can be asked: either way a call would fail
    }
  };
  const storageFault = followStorageFaults(bus);
  const crossOrigin = createCrossOrigin(config.corsOrigins);
  const isOpen = config.auth === "none";
  const health = createHealth({ services: publicServices, processOf, isServing, storageFault, intervalMs: 1_000 });
  const onFault = (fault: string) => logger.warn(fault);
  const grants = createBucket(bus, grantBucket);
  const granted = config.tokens && stack.use(await openBucketView(grants, onFault));
  const grantRecords = createGrantRecords(grants, granted?.view, onFault);
  await grantRecords.keepDefault([...config.defaultGrant]);
  const stateKey = await readSharedKey(bus, { bucket: "toolbus_gateway_keys", name: "mcp-request-states" });
  const shares = new Shares(config.shares);
  const wanted = config.tokens && stack.use(await openBucketView(createBucket(bus, wantedSubjects), onFault));
  const heldTokens = wanted && new HeldTokens(createBucket(bus, subjectTokens), wanted.view, onFault);
  const authenticate = createAuthenticate({ ...config, grantRecords, heldTokens, trust: bus.trust });
  const limiter = new ContentionLimiter();
  const enter = createEnter(authenticate, { shares, limiter, unread: new UnreadAnswers(4 * config.maxRequestBytes) });
  const interceptors = [createAccess(), ...clientInterceptors({ telemetry })];
  const transportTo = (process: string, before = interceptors) =>
    transportOnBus(bus, { process, interceptors: before, caller: nobody, sendsExpiry: false });
  const client = <S extends DescService>(of: S) => clientFor(bus, of, { interceptors, caller: nobody });
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
        transportOf: transportTo,
        health,
        reflection: createReflection([...publicServices, HealthService, ServerReflection]),
        stopping: context.signal,
      }),
      interceptors: [...serverInterceptors({ logger, telemetry, fromOutside: true }), contractValidation],
      readMaxBytes: config.maxRequestBytes,
      connectionsOfAddress: config.shares.connections,
      before: (request, response) => (isOpen && guardHost(request, response)) || crossOrigin(request, response),
      admit: createAdmission(enter, shares, limiter),
      fallback: createPlainPaths({
        enter,
        storageFault,
        logins: createLoginPaths({
          servers: client(McpServerService),
          enter,
          publicUrl: config.publicUrl,
          isOpen,
        }),
        console: createConsolePaths({
          files: await readConsoleFiles(),
          login: config.consoleLogin,
          components: createComponents(config.componentsDirectory, () =>
            logger.info(
              `there is no folder ${config.componentsDirectory}: components are served after a start with one`,
            ),
          ),
        }),
        metricsText: () => telemetry.metricsText(),
        telemetry,
        doors: [
          createMcpDoor({
            stateKey,
            tools: client(ToolService),
            calls: client(ToolCallService),
            agents: client(AgentService),
            content: client(McpContentService),
            health,
            transportOf: (of) => transportTo(processOf(of), [contractValidation, ...interceptors]),
            sessions: new McpSessions(client(SessionService), stateKey),
            held: new HeldCalls(),
            inSpan: telemetry.inSpan,
            takeCall: (caller) => shares.take(principalOf(caller), "calls"),
            stopping: context.signal,
            metadata: createResourceMetadata(config),
            onFault: (err) => logger.warn({ err }, `answering an MCP client failed: ${messageFromUnknown(err)}`),
            enter,
            maxBytes: config.maxRequestBytes,
          }),
          createResponsesDoor({
            runs: client(RunService),
            agents: client(AgentService),
            stopping: context.signal,
            onFault: (err) =>
              logger.warn({ err }, `answering a client of responses failed: ${messageFromUnknown(err)}`),
            enter,
            enterAgain: createEnterAgain(authenticate, shares, limiter),
            maxBytes: config.maxRequestBytes,
          }),
          createToolCallDoor({
            calls: client(ToolCallService),
            enter,
            maxBytes: config.maxRequestBytes,
          }),
        ],
      }),
      logger,
      drainTimeoutMs,
    }),
  );
  if (config.tls) {
    const follower = {
      onRenewed(files: TlsFiles) {
        server.renewCertificate(files);
        logger.info("the certificate was renewed");
      },
      onFault: (err: unknown) =>
        logger.warn({ err }, `the certificate is not renewed, and the one before holds on: ${messageFromUnknown(err)}`),
    };
    stack.use(followCertificate(config.tls, follower));
  }
  const owned = stack.move();
  return { announcement: { url: server.url }, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { openAuditTrail } from "#runtime/audit/trail.ts";
import { openServiceBus } from "#runtime/bus/credentials/service-bus.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { openInstances } from "#runtime/bus/ownership/instances/instances.ts";
import { OtherInstances } from "#runtime/bus/ownership/instances/other-instances.ts";
import { instanceService, openOwnership } from "#runtime/bus/ownership/ownership.ts";
import { createRedaction } from "#runtime/content/redaction.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { refuseLocally } from "#runtime/failure/local-failure.ts";
import { createAddressGuard } from "#runtime/http/address-guard.ts";
import { openConfinement } from "#runtime/lifecycle/open-confinement.ts";
import type { OpenService, ServiceContext } from "#runtime/lifecycle/run-service.ts";
import { createStopping } from "#runtime/lifecycle/stopping.ts";
import { createSessionOwners } from "#runtime/rpc/access/session-owners.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { withoutPrincipal } from "#runtime/rpc/identity.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import { deliveryOf } from "#runtime/rpc/nats/call/delivery.ts";
import { ACCESS } from "../access.ts";
import { sessionReader } from "../clients.ts";
import { createAuthorizations } from "./auth/authorization.ts";
import { Logins } from "./auth/logins.ts";
import { Renewals } from "./auth/renewal.ts";
import type { McpBridgeConfig } from "./config.ts";
import type { Connection } from "./connection/connection.ts";
import { createConnectionAudit } from "./connection/connection-audit.ts";
import { type AskedConnection, Connections } from "./connection/connections.ts";
import { closeDeleted } from "./connection/deleted-servers.ts";
import { createFleet } from "./connection/fleet.ts";
import { createOpener } from "./connection/open.ts";
import { createOwnPart } from "./connection/own-part.ts";
import { Starts } from "./connection/starts.ts";
import { Provider } from "./provider/provider.ts";
import { createAskContent } from "./provider/session-content.ts";
import { SessionResources } from "./provider/session-resources.ts";
import { createRoutes } from "./routes.ts";
import { openLoginRecords } from "./subscriptions/login-records.ts";
import { createPeers } from "./subscriptions/peers.ts";
import { openResourceSubscriptions } from "./subscriptions/resource-subscriptions.ts";
import { createSessionSources } from "./subscriptions/session-sources.ts";
import { openAppliedServers } from "./subscriptions.ts";
import type { TransportModule } from "./transport/module.ts";
import { createTransportRegistry } from "./transport/registry.ts";

const OWNED_KIND = "mcp-connection";

export async function openService(config: McpBridgeConfig, context: ServiceContext): Promise<OpenService> {
  const { name, instance, logger, telemetry } = context;
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openServiceBus(config, context, ACCESS["mcp-bridge"].stores));
  const confinement = await openConfinement(config.confinement, logger);
  const redact = createRedaction(config.secrets);
  const findTransport = createTransportRegistry(await loadTransports(config.transportModules));
  const applied = stack.use(await openAppliedServers(bus, logger));
  const { records, subjects } = stack.use(await openLoginRecords(bus, config.loginKeys, logger));
  const renewals = new Renewals(records);
  const allow = config.authAllow;
  const logins = new Logins({ ...config, records, renewals, subjects, allow, applied });
  const onError = (error: unknown) => logger.error({ err: error }, `a connection: ${messageFromUnknown(error)}`);
  const trail = stack.use(openAuditTrail(bus, name, logger));
  const starts = stack.use(new Starts());
  const connections = new Connections({
    ...config,
    starts,
    onChange: createConnectionAudit(trail.record),
    instance,
    logger,
    redact,
    onError,
    authorizationOf: createAuthorizations({
      ...{ records, renewals, subjects, allow },
      secrets: config.secrets,
      runAllow: config.runAllow,
    }),
    openerOf: createOpener({
      ...config,
      confinement,
      findTransport,
      logger,
      redact,
      runGuard: createAddressGuard(config.runAllow, { setting: "TOOLBUS_MCP_RUN_ALLOW" }),
      starts,
      inSpan: telemetry.inSpan,
    }),
  });
  const ownership = stack.use(
    await openOwnership<Connection, AskedConnection>(bus, {
      kind: OWNED_KIND,
      instance,
      onError,
      // What a connection does goes on after the call that opened it, on nobody's behalf.
      open: async (key, asked) => callPatience.exit(() => withoutPrincipal(() => connections.open(key, asked))),
    }),
  );
  connections.useOwners(ownership);

  const interceptors = clientInterceptors({ telemetry });
  const peers = createPeers(bus, name, interceptors);
  const owners = createSessionOwners(sessionReader(bus, { interceptors, defaultTimeoutMs: 10_000 }));
  const hasNotBegun = (error: unknown) =>
    deliveryOf(error) === "NOT_SENT" || failureFromConnectError(error).reason === "OWNER_CHANGED";
  const provider = new Provider({ ...config, connections, applied, hasNotBegun, peerOf: peers.peer });
  const sources = createSessionSources(bus, interceptors);
  const subscriptions = stack.use(await openResourceSubscriptions(bus, logger));
  const resources = new SessionResources({ sources, provider, subscriptions });
  const instances = stack.use(await openInstances(bus, name, onError));
  const own = createOwnPart(connections);
  const fleet = createFleet(own, new OtherInstances({ instance, instances, partOf: peers.partOf, logger }));
  const stopping = createStopping();
  const served = {
    instance,
    logger,
    telemetry,
    routes: createRoutes({
      ...{ provider, peerOf: peers.peer, connections, applied, logins, resources, subscriptions, own, fleet, owners },
      stopping: stopping.signal,
      audit: trail.record,
      askContent: createAskContent(sources, provider),
    }),
  };
  void closeDeleted({ applied, connections, signal: stopping.signal, onError });
  stack.use(await serveOnBus(bus, { ...served, service: instanceService(name, instance) }));
  stack.defer(() => connections.leave()); // others of this service ask for what they are to take over
  stack.use(await serveOnBus(bus, { ...served, service: name }));
  stack.use(stopping);
  return stack.move();
}

/** Modules of third parties, by path or by name of a package. */
async function loadTransports(specifiers: readonly string[]): Promise<TransportModule[]> {
  return Promise.all(
    specifiers.map(async (specifier) => {
      const isPath = specifier.startsWith(".") || specifier.startsWith("/");
      const module: { transport?: TransportModule } = await import(
        isPath ? pathToFileURL(resolve(specifier)).href : specifier
      );
      return (
        module.transport ??
        refuseLocally("invalid_argument", `${specifier} exports no transport`, { kind: "configuration" })
      );
    }),
  );
}

import { create } from "@bufbuild/protobuf";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { type StoredAgent, StoredAgentSchema } from "#gen/toolbus/router/v1/agents_pb.ts";
import {
  type Provider,
  ProviderSchema,
  type StoredTool,
  StoredToolSchema,
} from "#gen/toolbus/router/v1/catalogue_pb.ts";
import { SessionSchema } from "#gen/toolbus/session/v1/session_pb.ts";
import { followAudit, openAuditTrail, readAuditBackwards } from "#runtime/audit/trail.ts";
import { type Bus, openBus } from "#runtime/bus/bus.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { OpenService, ServiceContext } from "#runtime/lifecycle/run-service.ts";
import { serverInterceptors } from "#runtime/rpc/interceptors.ts";
import { serveOnNats } from "#runtime/rpc/nats/server.ts";
import { systemClock as clock } from "#runtime/time/clock.ts";
import { createAnswers } from "./answer.ts";
import type { Audit } from "./audit.ts";
import { createCalls } from "./call.ts";
import { Catalogue } from "./catalogue/catalogue.ts";
import { openCatalogueFiles } from "./catalogue/files.ts";
import { Shelf } from "./catalogue/shelf.ts";
import type { Config } from "./config.ts";
import { Contexts } from "./contexts.ts";
import { createAddressGuard } from "./execute/address-guard.ts";
import { createExecution } from "./execute/execute.ts";
import { openGateway } from "./execute/gateway.ts";
import { createOutside } from "./execute/outside.ts";
import { createProviderExecution } from "./execute/provider.ts";
import { Flights } from "./flights.ts";
import { openMessages } from "./messages.ts";
import { createRecords } from "./record.ts";
import { createRoutes } from "./routes.ts";
import { Sessions } from "./sessions.ts";
import { createSubmissions } from "./submissions.ts";
import { createResultStore, openCallStore } from "./subscriptions/call-store.ts";
import { createDocuments, openFollowing } from "./subscriptions/documents.ts";
import { createProviders } from "./subscriptions/providers.ts";
import { createSpaces } from "./subscriptions/spaces.ts";
import { createValidator, type Validator } from "./validate.ts";
import { createWaiters } from "./waiters.ts";

const IDLE_CHECK_MS = 30_000;
const PROVIDER_GRACE_MS = 1_000;

/** The providers of the suite. */
const OWN_PROVIDERS = { mcp: "mcp-bridge", worker: "worker-pool", caller: "caller-relay", spaces: "spaces" };

export async function openService(config: Config, context: ServiceContext): Promise<OpenService> {
  const { name, instance, logger, signal, telemetry } = context;
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(
    await openBus({
      url: config.natsUrl,
      user: config.natsUser,
      password: config.natsPassword,
      replicas: config.replicas,
      name: `${name}-${instance}`,
      signal,
      onStatus: (status) => logger.info(status, `bus: ${status.kind}`),
    }),
  );
  const onLost = (event: unknown, error: unknown) => logger.error({ event, err: error }, "an audit event was lost");
  const trail = stack.use(openAuditTrail(bus, name, { onLost }));
  const audit: Audit = (event) => trail.record(event);
  const validator = createValidator();
  const catalogue = stack.adopt(...(await openCatalogue(bus, { config, validator, audit, logger })));
  const find = createProviders(bus, (provider) => catalogue.provider(provider), telemetry);
  const spaces = createSpaces(bus, telemetry);
  const waiters = createWaiters();
  const executing = new Set<string>();
  const store = stack.use(await openCallStore(bus, { waiters, executing }));
  const messages = stack.use(
    openMessages(spaces, clock, (what, error) => logger.warn(`${what} waits: ${messageFromUnknown(error)}`)),
  );
  const answers = createAnswers({ validator, maxBytes: config.maxResultBytes, store: createResultStore(bus) });
  const sessions: Sessions = new Sessions({
    documents: createDocuments(bus, { bucket: "toolbus_sessions", prefix: "", schema: SessionSchema }),
    catalogue,
    clock,
    onClosed: (sessionId) => contexts.closeSession(sessionId),
  });
  const contexts = stack.use(
    new Contexts({
      catalogue,
      sessions,
      find,
      clock,
      startupMs: config.providerStartupMs,
      idleMs: config.contextIdleMs,
      onUnavailable: ({ agent, sessionId }, source, reason) => {
        audit({ kind: AuditKind.UNAVAILABLE, agent, sessionId, tool: source, message: reason });
      },
    }),
  );
  const idle = setInterval(() => contexts.closeIdle(), IDLE_CHECK_MS);
  stack.defer(() => clearInterval(idle));
  const { gatewayAllow, gatewayMaxResponseBytes: maxResponseBytes, secrets, workerStartupMs } = config;
  const gateway = stack.use(openGateway({ guard: createAddressGuard(gatewayAllow), secrets, maxResponseBytes }));
  const graceMs = (provider: string) => PROVIDER_GRACE_MS + (provider === "worker" ? workerStartupMs : 0);
  const execution = createExecution({
    gateway,
    outside: createOutside(store, waiters, clock),
    providers: createProviderExecution({ find, graceMs }),
  });
  const records = createRecords(store, waiters, executing);
  const files = stack.use(
    await openCatalogueFiles(catalogue, {
      ...config,
      onFaults: (faults) => logger.warn({ faults }, faults.length > 0 ? "files are refused" : "all files are good"),
    }),
  );
  const stopping = new AbortController();
  stack.use(
    await serveOnNats(bus, {
      service: name,
      instance,
      logger,
      interceptors: serverInterceptors({ logger, telemetry, validate: true }),
      routes: createRoutes({
        catalogue,
        files,
        calls: createCalls({
          contexts,
          spaces,
          validator,
          records,
          messages,
          execution,
          answers,
          audit,
          clock,
          flights: new Flights(),
        }),
        contexts,
        sessions,
        spaces,
        store,
        submissions: createSubmissions({ store, messages, validator, clock, bound: answers.bound }),
        audit: {
          follow: (from, ends) => followAudit(bus, from, ends),
          backwards: (before, ends) => readAuditBackwards(bus, before, ends),
        },
        stopping: stopping.signal,
      }),
    }),
  );
  stack.defer(() => stopping.abort()); // watches would keep the server from draining
  return stack.move();
}

interface CatalogueNeeds {
  config: Config;
  validator: Validator;
  audit: Audit;
  logger: ServiceContext["logger"];
}

/** The catalogue, following its buckets; and what ends that. */
async function openCatalogue(bus: Bus, needs: CatalogueNeeds): Promise<[Catalogue, () => Promise<void>]> {
  const { config, validator, audit, logger } = needs;
  await using stack = new AsyncDisposableStack();
  const onFault = (fault: string) => logger.error(fault);
  const places = {
    agents: { bucket: "toolbus_agents", prefix: "", schema: StoredAgentSchema },
    tools: { bucket: "toolbus_tools", prefix: "tool.", schema: StoredToolSchema },
    providers: { bucket: "toolbus_tools", prefix: "provider.", schema: ProviderSchema },
  } as const;
  const agents = { documents: createDocuments(bus, places.agents), shelf: new Shelf<StoredAgent>() };
  const tools = { documents: createDocuments(bus, places.tools), shelf: new Shelf<StoredTool>() };
  const providers = { documents: createDocuments(bus, places.providers), shelf: new Shelf<Provider>() };
  const agentBucket = stack.use(
    await openFollowing(bus, "toolbus_agents", [{ ...agents, place: places.agents }], onFault),
  );
  const toolBucket = stack.use(
    await openFollowing(
      bus,
      "toolbus_tools",
      [
        { ...tools, place: places.tools },
        { ...providers, place: places.providers },
      ],
      onFault,
    ),
  );
  const own = Object.entries(OWN_PROVIDERS).map(([name, service]) => ({ name, service, url: "" }));
  const ownProviders: Provider[] = [...own, ...config.providers].map((provider) => create(ProviderSchema, provider));
  const caughtUp = async () => void (await Promise.all([agentBucket.caughtUp(), toolBucket.caughtUp()]));
  const opened = stack.move();
  const catalogue = new Catalogue({ agents, tools, providers, ownProviders, caughtUp, validator, audit });
  return [catalogue, () => opened.disposeAsync()];
}

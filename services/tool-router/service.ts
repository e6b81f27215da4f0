import { randomUUID } from "node:crypto";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import {
  auditSequenceSince,
  followAudit,
  openAuditEviction,
  openAuditTrail,
  readAuditBackwards,
} from "#runtime/audit/trail.ts";
import { openBucketEviction } from "#runtime/bus/buckets/bucket-eviction.ts";
import { createBucketIndex } from "#runtime/bus/buckets/reading/bucket-index.ts";
import { readSharedKey } from "#runtime/bus/buckets/shared-key.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { openServiceBus } from "#runtime/bus/credentials/service-bus.ts";
import { openQuota } from "#runtime/bus/quota/quota.ts";
import { usageByHeader } from "#runtime/bus/quota/usage.ts";
import { REFUSAL_WATERMARK } from "#runtime/bus/quota/watermarks.ts";
import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { createAddressGuard } from "#runtime/http/address-guard.ts";
import type { OpenService, ServiceContext } from "#runtime/lifecycle/run-service.ts";
import { createStopping } from "#runtime/lifecycle/stopping.ts";
import { openResultsWithQuota } from "#runtime/results/store/quota.ts";
import { createSessionOwners } from "#runtime/rpc/access/session-owners.ts";
import { createCallKeySigner } from "#runtime/rpc/access/tokens/call-keys.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { contractValidation } from "#runtime/rpc/validation.ts";
import { createValidator } from "#runtime/schema/json-schema/validator.ts";
import { systemClock as clock } from "#runtime/time/clock.ts";
import { ACCESS } from "../access.ts";
import { createAdmission } from "./calls/admission.ts";
import { createAnswers } from "./calls/answers/answer.ts";
import { createCarryOut } from "./calls/call.ts";
import { createExecution, type Execution, type Executors, tracedExecution } from "./calls/execute/execute.ts";
import { openHttpExecution } from "./calls/execute/http/http-execution.ts";
import { createQuestions } from "./calls/execute/input/questions.ts";
import { createProviderExecution, type ProvidersOptions } from "./calls/execute/provider.ts";
import { InFlightCalls } from "./calls/in-flight.ts";
import { openMessages } from "./calls/messages.ts";
import { Records } from "./calls/records/records.ts";
import { createAnswerers } from "./calls/requests/answerers.ts";
import { createCallKeys } from "./calls/requests/call-keys.ts";
import { createResults } from "./calls/requests/results.ts";
import { createSubmissions } from "./calls/requests/submissions.ts";
import { createTasks } from "./calls/requests/tasks.ts";
import { type CatalogueFiles, openCatalogueFiles } from "./catalogue/files/files.ts";
import type { Config } from "./config.ts";
import { createRoutes, type Routes } from "./routes.ts";
import { openCatalogue } from "./service/catalogue.ts";
import { openRecordedCalls } from "./service/recorded-calls.ts";
import { openSwitching } from "./service/switching.ts";
import { Contexts } from "./sessions/contexts/contexts.ts";
import type { ContextsOptions } from "./sessions/contexts/open-contexts.ts";
import { createOfferJudge } from "./sessions/offers/fitness/fitness.ts";
import { OwnOffers } from "./sessions/offers/own-offers.ts";
import { RecentSessions } from "./sessions/recent-sessions.ts";
import { SessionChanges } from "./sessions/session-changes.ts";
import { Sessions } from "./sessions/sessions.ts";
import { releaseServers } from "./sessions/switch/scope-release.ts";
import { SessionCalls } from "./sessions/switch/session-calls.ts";
import { createProviders } from "./subscriptions/providers/providers.ts";
import { createSampling } from "./subscriptions/sampling.ts";
import {
  createForgetCaller,
  createHasRuns,
  sessionPlace,
  sessionRetention,
} from "./subscriptions/sessions/session-retention.ts";
import { createSpaces } from "./subscriptions/spaces.ts";

const IDLE_CHECK_MS = 10_000;
const PROVIDER_GRACE_MS = 1_000;

export async function openService(config: Config, context: ServiceContext): Promise<OpenService> {
  const { name, instance, logger, telemetry } = context;
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openServiceBus(config, context, ACCESS["tool-router"].stores));
  const audit: Audit = stack.use(openAuditTrail(bus, name, logger)).record;
  const warn = (fault: string) => logger.warn(fault);
  stack.use(openAuditEviction(bus, warn));
  const validator = createValidator();
  /** Of tools, which say what they will: what an operator writes has been checked before. */
  const lenient = createValidator({ isLenient: true });
  const onFault = (fault: string) => logger.error(fault);
  const ownSources = stack.use(new OwnOffers());
  const onAgentRemoved = (agent: string) => releaseServers({ find, logger }, agent);
  const catalogueNeeds = { ...config, validator, audit, servers: config, ownSources, onAgentRemoved, onFault };
  const { catalogue, editor } = await openCatalogue(stack, bus, catalogueNeeds);
  const find = createProviders(bus, (provider) => catalogue.provider(provider), telemetry);
  ownSources.follow(find("worker"));
  const spaces = createSpaces(bus, telemetry);
  const waiters = new KeyedListeners();
  const executing = new Set<string>();
  const inFlight = new InFlightCalls();
  const messages = stack.use(openMessages(spaces, clock, warn));
  const stored = storedSessions(stack, bus);
  const mayWatch = (principal: string, tool: string) => catalogue.mayWatch(principal, tool);
  const readSession = async (id: string) => stored.recent.active(id) ?? (await stored.bucket.read(id))?.value;
  const ownership = createSessionOwners(readSession);
  const stopping = createStopping();
  const recorded = await openRecordedCalls(stack, bus, {
    ...{ waiters, executing, inFlight, ownership, messages, audit, mayWatch },
    ...{ acknowledgeMs: config.acknowledgeMs, stopping: stopping.signal, onFault: warn },
  });
  const retention = sessionRetention(clock, {
    ...spaces,
    hasRuns: createHasRuns(bus, telemetry),
    forgetCaller: createForgetCaller(find),
  });
  const fills = "sessions of the last day, and others that have runs or for which events wait";
  stack.use(openBucketEviction(bus, { ...retention, fills, onFault: warn }));
  const remedy = "close sessions that nobody uses, which leave after a day";
  const quota = stack.use(
    openQuota(bus, {
      ...usageByHeader(bus, sessionPlace),
      holds: "sessions",
      remedy,
      watermark: REFUSAL_WATERMARK,
      onFault: warn,
    }),
  );
  const findPrincipal = async (id: string) => (await stored.bucket.read(id))?.value.principal;
  const resultStore = stack.use(openResultsWithQuota(bus, { findPrincipal, onFault: warn }));
  const answers = createAnswers({ validator: lenient, maxBytes: config.maxResultBytes, store: resultStore.put });
  const sessions = new Sessions({ ...stored, catalogue, clock, quota });
  const sessionCalls = new SessionCalls();
  const contexts = openContexts(stack, config, { catalogue, find, audit });
  const { questionMs } = config;
  const records = new Records({ ...recorded, tasks: recorded.taskIndex, waiters, messages, executing });
  const key = await readSharedKey(bus, { bucket: "toolbus_router_keys", name: "question-ids" });
  const questions = createQuestions({ ...recorded, key, waiters, messages, spaces, audit, clock, questionMs });
  const executors = openExecution(stack, config, {
    outside: recorded.outside,
    find,
    questions,
    records,
    sampling: createSampling(bus, telemetry),
  });
  const execution = tracedExecution(executors, telemetry.inSpan);
  const switching = await openSwitching(stack, bus, {
    self: `${instance}-${randomUUID().slice(0, 8)}`,
    drainMs: config.switchDrainMs,
    buildMs: config.providerStartupMs + PROVIDER_GRACE_MS,
    leaveSpace: spaces.leaveSpace,
    ...{ catalogue, sessions, contexts, sessionCalls, find, clock, audit, logger, telemetry, onFault },
    changes: stored.changes,
  });
  const admission = createAdmission({ sessions, contexts, spaces, validator: lenient, audit, clock });
  const calling = { admission, records, messages, execution, answers, clock, sessions, sessionCalls };
  const carryOut = createCarryOut(calling);
  const files = stack.use(await openFiles(config, { catalogue, editor, audit, logger, ownSources }));
  const answerers = createAnswerers({ spaces, clock });
  const callKeys = createCallKeys({ ...recorded, answerers, sign: createCallKeySigner(bus.login), audit, clock });
  stack.use(
    await serveOnBus(bus, {
      service: name,
      instance,
      logger,
      telemetry,
      validation: contractValidation,
      routes: createRoutes({
        ...{ catalogue, editor, files, inFlight, carryOut, contexts, sessions, ownership, switching, spaces },
        ...{ answerers, callKeys, leftUnchecked: lenient.leftUnchecked, ...recorded },
        changes: stored.changes,
        tasks: createTasks({ store: recorded.store, tasks: recorded.taskIndex, clock }),
        submissions: createSubmissions({ ...recorded, answerers, mayWatch, validator: lenient, clock, answers, audit }),
        results: createResults({ ownership, calls: recorded.store, store: resultStore }),
        audit: auditReader(bus),
        stopping: stopping.signal,
      }),
    }),
  );
  stack.use(stopping);
  return stack.move();
}

/** The stored sessions and their changes. A session that was created or read a moment ago is not read again. */
function storedSessions(stack: AsyncDisposableStack, bus: Bus) {
  const changes = new SessionChanges();
  const recent = new RecentSessions(clock);
  changes.subscribe((change) => recent.put(change));
  const principals = stack.use(createBucketIndex(bus, sessionPlace, ({ principal }) => principal));
  return { changes, recent, principals, bucket: recent.remembering(createBucket(bus, sessionPlace)) };
}

/** The contexts in use. Idle ones are closed. */
function openContexts(
  stack: AsyncDisposableStack,
  { providerStartupMs: startupMs, contextIdleMs: idleMs }: Config,
  parts: Pick<ContextsOptions, "catalogue" | "find"> & { audit: Audit },
): Contexts {
  const { audit, ...sources } = parts;
  const contexts = stack.use(
    new Contexts({
      ...sources,
      clock,
      startupMs,
      idleMs,
      judge: createOfferJudge(),
      onUnavailable: ({ agent, sessionId, principal }, source, reason) => {
        audit({ kind: AuditKind.UNAVAILABLE, agent, sessionId, tool: source, message: reason }, principal);
      },
      onAvailable: ({ agent, sessionId, principal }, source) => {
        audit({ kind: AuditKind.AVAILABLE, agent, sessionId, tool: source }, principal);
      },
    }),
  );
  const idle = setInterval(() => contexts.closeIdle(), IDLE_CHECK_MS);
  stack.defer(() => clearInterval(idle));
  return contexts;
}

function openExecution(
  stack: AsyncDisposableStack,
  config: Config,
  { outside, ...provided }: { outside: Executors["outside"] } & Omit<ProvidersOptions, "graceMs">,
): Execution {
  const { gatewayAllow, gatewayMaxResponseBytes: maxResponseBytes, secrets, workerStartupMs } = config;
  const http = stack.use(
    openHttpExecution({
      guard: createAddressGuard(gatewayAllow, { setting: "TOOLBUS_GATEWAY_ALLOW" }),
      secrets,
      maxResponseBytes,
    }),
  );
  const graceMs = (provider: string) => PROVIDER_GRACE_MS + (provider === "worker" ? workerStartupMs : 0);
  return createExecution({ http, outside, providers: createProviderExecution({ ...provided, graceMs }) });
}

type FilesParts = Parameters<typeof openCatalogueFiles>[0] & {
  audit: Audit;
  logger: ServiceContext["logger"];
  ownSources: OwnOffers;
};

function openFiles(config: Config, parts: FilesParts): Promise<CatalogueFiles> {
  const { catalogue, editor, audit, logger, ownSources } = parts;
  return openCatalogueFiles(
    { catalogue, editor },
    {
      ...config,
      audit,
      onFaults: (faults) => logger.warn({ faults }, faults.length > 0 ? "files are refused" : "all files are good"),
      async onWarnings(agent) {
        await ownSources.known(); // which of them hold only then can be told
        const stored = catalogue.agent(agent);
        const warnings = stored ? catalogue.findings(stored.agent).warnings : [];
        if (warnings.length > 0) logger.warn({ agent }, `agent ${agent}: ${warnings.join("; ")}`);
      },
    },
  );
}

function auditReader(bus: Bus): Routes["audit"] {
  return {
    follow: (options) => followAudit(bus, options),
    backwards: (before, ends, words) => readAuditBackwards(bus, before, ends, words),
    sequenceSince: (time, ends) => auditSequenceSince(bus, time, ends),
  };
}

import { randomBytes } from "node:crypto";
import type { Model } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { CallShown } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { openAuditTrail } from "#runtime/audit/trail.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { openServiceBus } from "#runtime/bus/credentials/service-bus.ts";
import { openQuota } from "#runtime/bus/quota/quota.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { OpenService, ServiceContext } from "#runtime/lifecycle/run-service.ts";
import { createStopping } from "#runtime/lifecycle/stopping.ts";
import { boundedResult } from "#runtime/results/shortened.ts";
import { openResultsWithQuota } from "#runtime/results/store/quota.ts";
import { createResultRemoval } from "#runtime/results/store/removal.ts";
import { createPrincipals } from "#runtime/rpc/access/session-principals.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { ACCESS } from "../access.ts";
import { sessionReader } from "../clients.ts";
import type { Config } from "./config.ts";
import { showingImages } from "./model/prompt/stored-images.ts";
import { createModelSource, type ModelSource } from "./model/providers/model-source.ts";
import { createRoutes } from "./routes.ts";
import type { BoundResult } from "./runs/answer/outputs.ts";
import { createRunChanges } from "./runs/list/run-changes.ts";
import { createRunQuota } from "./runs/run-quota.ts";
import { startFromInbox } from "./runs/self-wake/self-wake.ts";
import { type Canceling, cancelingSubAgents } from "./runs/sub-agents/cancel.ts";
import { openRetention } from "./sessions/retention/retention.ts";
import { turnLoop } from "./sessions/turn-loop.ts";
import { Slots } from "./sessions/wakes/slots.ts";
import { runWakeLoop } from "./sessions/wakes/wake-loop.ts";
import { createAcceptedHere } from "./sessions/worker/accepted-here.ts";
import { createSessionWorker } from "./sessions/worker/worker.ts";
import { createRouterClients } from "./subscriptions/clients/router-clients.ts";
import { createSpacesClient } from "./subscriptions/clients/spaces-client.ts";
import { createHolders, openHolderAnswers } from "./subscriptions/holders.ts";
import { createAllRuns, createDeletedNews } from "./subscriptions/live/all-runs.ts";
import { createLiveTexts } from "./subscriptions/live/live-texts.ts";
import { createLiveUpdates } from "./subscriptions/live/live-updates.ts";
import { runShares } from "./subscriptions/streams/run-shares.ts";
import { createStoredReader } from "./subscriptions/streams/stored-reader.ts";
import { createStreamQueues } from "./subscriptions/streams/stream-queues.ts";
import { createStreamRetention } from "./subscriptions/streams/stream-retention.ts";
import { createStreamRunKeys, createStreamRunLog } from "./subscriptions/streams/stream-run-log.ts";
import { createStreamTimers, openDueTimers } from "./subscriptions/streams/stream-timers.ts";
import { openStreamWakes } from "./subscriptions/streams/stream-wakes.ts";

/** Parts that a process may bring of its own. */
export interface OwnParts {
  /** Where models come from; the configured providers by default. */
  readonly modelOf?: ModelSource;
}

export async function openService(config: Config, context: ServiceContext, own: OwnParts = {}): Promise<OpenService> {
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openServiceBus(config, context, ACCESS.orchestrator.stores));
  stack.use(await openOrchestrator(bus, config, context, own));
  return stack.move();
}

/** Everything above the bus. Disposing hands the runs over that are under way; see `drain`. */
export async function openOrchestrator(
  bus: Bus,
  config: Config,
  context: Omit<ServiceContext, "signal">,
  { modelOf = createModelSource(config.model) }: OwnParts = {},
): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const { name, instance, logger } = context;
  const shared = { log: createStreamRunLog(bus), queues: createStreamQueues(bus), clock: systemClock, logger };
  const heartbeatMs = config.takeoverMs / 3;
  const wakes = await openStreamWakes(bus, { ackWaitMs: config.takeoverMs, heartbeatMs, maxInHand: 100_000 });
  stack.use(await openDueTimers(bus, wakes, logger));
  const audit = stack.use(openAuditTrail(bus, name, logger)).record;
  const holders = createHolders(bus);
  const acceptedHere = createAcceptedHere();
  const onFault = (fault: string) => logger.warn(fault);
  const stored = stack.use(openQuota(bus, { ...runShares(bus, shared.log), onFault }));
  const runQuota = createRunQuota(shared.log, config.maxOpenRuns, stored);
  const spaces = createSpacesClient(bus, clientInterceptors(context));
  const display = { toolMessages: spaces, onNotShown: logNotShown(logger) };
  const acceptance = { ...shared, ...display, wakes, acceptedHere, runQuota, keys: createStreamRunKeys(bus) };
  const clients = openClients(bus, context, { ...acceptance, notify: holders.notify });
  const handover = new AbortController();
  const abandon = new AbortController();
  const texts = createLiveTexts(bus);
  const { findPrincipal } = createPrincipals(sessionReader(bus, { interceptors: clientInterceptors(context) }));
  const results = stack.use(openResultsWithQuota(bus, { findPrincipal, onFault }));
  const boundResult: BoundResult = (result, sessionId) =>
    boundedResult(result, config.maxResultBytes, (whole) => results.put(sessionId, whole));
  const readStored = createStoredReader(results);
  const slots = new Slots(config.slots);
  const loop = {
    lendSlot: (principal: string) => slots.lend(principal),
    ...{ ...clients, ...shared, ...display, inbox: spaces, audit },
    modelOf: (model: Model) => showingImages(modelOf(model), model, readStored),
    checkpointMs: config.checkpointMs,
    handover: handover.signal,
    publishDelta: texts.publishDelta,
    setDeltas: texts.setDeltas,
    inSpan: context.telemetry.inSpan,
  };
  const selfWake = { ...clients, ...acceptance, inbox: spaces, audit };
  const life = `${instance}-${randomBytes(4).toString("hex")}`; // a successor under this name holds nothing of ours
  const worker = createSessionWorker({
    ...{ ...shared, holders, acceptedHere, slots, timers: createStreamTimers(bus), instance: life },
    turnLoop: (...given) => turnLoop(loop, ...given),
    releaseRun: clients.releaseRun,
    startFromInbox: (sessionId, ends) => startFromInbox(selfWake, sessionId, ends),
    handover: handover.signal,
    abandon: abandon.signal,
  });
  const answers = { answer: worker.answer, publishSnapshot: texts.publishSnapshot };
  stack.use(await openHolderAnswers(bus, life, answers));
  const stopping = createStopping();
  const retention = createStreamRetention(bus);
  const onTrouble = (what: string, err: unknown) => logger.warn({ err }, what);
  const changes = stack.use(createRunChanges({ log: shared.log, allRuns: createAllRuns(bus), onTrouble }));
  const routes = createRoutes({
    ...{ ...clients, ...acceptance, retention, pages: shared.queues, live: createLiveUpdates(bus) },
    ...{ changes, tellDeleted: createDeletedNews(bus), boundResult, audit },
    runServers: config.runServers,
    requestSnapshot: holders.requestSnapshot,
    notify: holders.notify,
    stopping: stopping.signal,
  });
  stack.use(await serveOnBus(bus, { service: name, instance, logger, telemetry: context.telemetry, routes }));
  const kept = { retention, results: createResultRemoval(bus), keptMs: config.retentionMs };
  stack.use(openRetention({ ...shared, ...kept }));
  stack.use(stopping);
  const wakeLoop = { ...shared, queue: wakes, slots, work: worker.work };
  const working = runWakeLoop(wakeLoop, handover.signal);
  stack.defer(() => drain(working, { handover, abandon, drainMs: config.drainMs }));
  return stack.move();
}

type Context = Omit<ServiceContext, "signal">;

/** The tool-router; a call that is canceled takes the run along that it started. */
function openClients(bus: Bus, { logger, telemetry }: Context, canceling: Canceling) {
  const clients = createRouterClients(bus, clientInterceptors({ telemetry }), (err) =>
    logger.warn({ err }, "what a run has open is closed only when nobody has used it for a while"),
  );
  return { ...clients, router: cancelingSubAgents(clients.router, canceling) };
}

function logNotShown(logger: Context["logger"]) {
  return (err: unknown, shown?: CallShown) =>
    logger.warn(
      { err, shown },
      shown === undefined ? "calls are not shown as they are written" : "a shown call stands",
    );
}

/**
 * Stops taking wake-ups and puts the runs down where they are: a model's answer in the making is dropped, calls in flight may
 * finish for a while. What is put down, another process takes up at once.
 */
async function drain(
  working: Promise<void>,
  { handover, abandon, drainMs }: { handover: AbortController; abandon: AbortController; drainMs: number },
): Promise<void> {
  handover.abort(new Error("this process hands its runs over"));
  const message = "this orchestrator stops: another one goes on";
  const stops = new Failure("unavailable", message, { reason: "INSTANCE_STOPPING" });
  if (!(await comesWithin(drainMs, working))) abandon.abort(stops);
  await working;
}

import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { CallShown } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type WatchRunResponse, WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { openAuditTrail } from "#runtime/audit/trail.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { openServiceBus } from "#runtime/bus/service-bus.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { openBackground } from "#runtime/lifecycle/background.ts";
import type { OpenService, ServiceContext } from "#runtime/lifecycle/run-service.ts";
import { createResultRemoval } from "#runtime/results/removal.ts";
import { clientInterceptors, serverInterceptors } from "#runtime/rpc/interceptors.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { delay } from "#runtime/time/delay.ts";
import type { Config } from "./config.ts";
import type { DeltaWriter } from "./loop/streaming/deltas.ts";
import { createModelSource, type ModelSource } from "./model/providers/model-source.ts";
import { createRoutes } from "./routes.ts";
import { startFromInbox } from "./runs/self-wake/self-wake.ts";
import { cancellingSubAgents } from "./runs/sub-agents/cancel.ts";
import { keepSweeping } from "./sessions/retention/retention.ts";
import { turnLoop } from "./sessions/turn-loop.ts";
import { runWakeLoop } from "./sessions/wakes/wake-loop.ts";
import { createAcceptedHere } from "./sessions/worker/accepted-here.ts";
import { createSessionWorker } from "./sessions/worker/worker.ts";
import { createRouterClients } from "./subscriptions/clients/router-clients.ts";
import { createInboxClient, createToolMessagesClient } from "./subscriptions/clients/spaces-clients.ts";
import { createHolders, openHolderAnswers } from "./subscriptions/holders.ts";
import { createLiveUpdates } from "./subscriptions/live/live-updates.ts";
import { createStreamQueues } from "./subscriptions/streams/stream-queues.ts";
import { createStreamRetention } from "./subscriptions/streams/stream-retention.ts";
import { createStreamRunKeys, createStreamRunLog, publishUpdate } from "./subscriptions/streams/stream-run-log.ts";
import { createStreamTimers, openDueTimers } from "./subscriptions/streams/stream-timers.ts";
import { openStreamWakes } from "./subscriptions/streams/stream-wakes.ts";

/** Parts that a process may bring of its own. */
export interface OwnParts {
  /** Where models come from; the configured providers unless told. */
  readonly modelOf?: ModelSource;
}

export async function openService(config: Config, context: ServiceContext, own: OwnParts = {}): Promise<OpenService> {
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openServiceBus(config, context));
  stack.use(await openOrchestrator(bus, config, context, own));
  return stack.move();
}

/** Everything above the bus. Disposing hands the runs over that are under way; see `drain`. */
export async function openOrchestrator(
  bus: Bus,
  config: Config,
  { name, instance, logger, telemetry }: Omit<ServiceContext, "signal">,
  { modelOf = createModelSource(config.model) }: OwnParts = {},
): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const clock = systemClock;
  const life = `${instance}-${randomBytes(4).toString("hex")}`; // a successor under this name holds nothing of ours
  const log = createStreamRunLog(bus);
  const queues = createStreamQueues(bus);
  const heartbeatMs = config.takeoverMs / 3;
  const wakes = await openStreamWakes(bus, { ackWaitMs: config.takeoverMs, heartbeatMs, maxInHand: 100_000 });
  stack.use(await openDueTimers(bus, wakes, logger));
  const holders = createHolders(bus);
  const interceptors = clientInterceptors({ telemetry });
  const routerClients = createRouterClients(bus, interceptors, (err) =>
    logger.warn({ err }, "what a run has open is closed only when nobody has used it for a while"),
  );
  const onLost = (event: unknown, error: unknown) => logger.error({ event, err: error }, "an audit event was lost");
  const trail = stack.use(openAuditTrail(bus, name, { onLost }));
  const handover = new AbortController();
  const abandon = new AbortController();
  const deltasByRunId = new Map<string, DeltaWriter>();

  const toolMessages = {
    toolMessages: createToolMessagesClient(bus, interceptors),
    onNotShown: (err: unknown, draft?: CallShown) =>
      logger.warn(
        { err, draft },
        draft === undefined ? "calls are not shown as they are written" : "a shown call stands",
      ),
  };
  const acceptedHere = createAcceptedHere();
  const acceptance = { log, queues, wakes, clock, acceptedHere, keys: createStreamRunKeys(bus), ...toolMessages };
  const router = cancellingSubAgents(routerClients.router, { ...acceptance, notify: holders.notify });
  const clients = { ...routerClients, router, inbox: createInboxClient(bus, interceptors) };
  const selfWake = { ...clients, ...acceptance, logger, audit: trail.record };
  const loop = {
    ...clients,
    ...toolMessages,
    log,
    queues,
    clock,
    logger,
    audit: trail.record,
    modelOf,
    checkpointMs: config.checkpointMs,
    handover: handover.signal,
    publishDelta: (runId: string, value: WatchDelta) =>
      publishUpdate(bus, runId, create(WatchRunResponseSchema, { update: { case: "delta", value } })),
    setDeltas: (runId: string, deltas: DeltaWriter | undefined) => {
      if (deltas === undefined) deltasByRunId.delete(runId);
      else deltasByRunId.set(runId, deltas);
    },
  };
  const worker = createSessionWorker({
    log,
    queues,
    holders,
    timers: createStreamTimers(bus),
    acceptedHere,
    clock,
    logger,
    instance: life,
    turnLoop: (run, active, ends) => turnLoop(loop, run, active, ends),
    releaseRun: routerClients.releaseRun,
    startFromInbox: (sessionId, ends) => startFromInbox(selfWake, sessionId, ends),
    handover: handover.signal,
    abandon: abandon.signal,
  });
  stack.use(
    await openHolderAnswers(bus, life, {
      answer: worker.answer,
      publishSnapshot(runId) {
        const value = deltasByRunId.get(runId)?.snapshot();
        if (value !== undefined)
          publishUpdate(bus, runId, create(WatchRunResponseSchema, { update: { case: "replaced", value } }));
      },
    }),
  );
  const stopping = new AbortController();
  const server = await serveOnNats(bus, {
    service: name,
    instance,
    logger,
    interceptors: serverInterceptors({ logger, telemetry }),
    routes: createRoutes({
      ...clients,
      ...acceptance,
      runServers: config.runServers,
      pages: queues,
      live: createLiveUpdates(bus),
      requestSnapshot: holders.requestSnapshot,
      notify: holders.notify,
      stopping: stopping.signal,
    }),
  });
  stack.use(server);
  const kept = { retention: createStreamRetention(bus), results: createResultRemoval(bus), keptMs: config.retentionMs };
  const sweep = { ...kept, queues, log, clock, logger };
  stack.use(openBackground((signal) => keepSweeping(sweep, signal)));
  stack.defer(() =>
    stopping.abort(new Failure("unavailable", "this orchestrator stops: watch again", { reason: "INSTANCE_STOPPING" })),
  );
  const working = runWakeLoop({ queue: wakes, slots: config.slots, work: worker.work, clock, logger }, handover.signal);
  stack.defer(() => drain(working, { handover, abandon, drainMs: config.drainMs }));
  return stack.move();
}

type WatchDelta = Extract<WatchRunResponse["update"], { case: "delta" }>["value"];

/**
 * Stops taking wake-ups and puts the runs down where they are: a model's answer in the making is dropped, calls in flight may
 * finish for a while. What is put down, another process takes up at once.
 */
async function drain(
  working: Promise<void>,
  { handover, abandon, drainMs }: { handover: AbortController; abandon: AbortController; drainMs: number },
): Promise<void> {
  handover.abort(new Error("this process hands its runs over"));
  const over = new AbortController();
  const patience = delay(drainMs, over.signal).then(
    () => abandon.abort(new Error("this process stops")),
    () => {}, // everything was put down in time
  );
  await working;
  over.abort();
  await patience;
}

import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { openAuditTrail } from "#runtime/audit/trail.ts";
import { openServiceBus } from "#runtime/bus/credentials/service-bus.ts";
import { instanceService } from "#runtime/bus/ownership/ownership.ts";
import { openQuota } from "#runtime/bus/quota/quota.ts";
import { usageBySession } from "#runtime/bus/quota/usage.ts";
import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import type { OpenService, ServiceContext } from "#runtime/lifecycle/run-service.ts";
import { createStopping } from "#runtime/lifecycle/stopping.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { createValidator } from "#runtime/schema/json-schema/validator.ts";
import { type Clock, systemClock } from "#runtime/time/clock.ts";
import { ACCESS } from "../access.ts";
import type { Config } from "./config.ts";
import { createDeclarations } from "./delivery/declarations.ts";
import { deliver } from "./delivery/delivery.ts";
import { createRelay } from "./delivery/relay.ts";
import type { SendingParts } from "./delivery/sending.ts";
import { createAnswers } from "./requests/answers.ts";
import { createCalls } from "./requests/calls.ts";
import { createProgressReports } from "./requests/progress.ts";
import { createRequests } from "./requests/requests.ts";
import { createPeerRoutes, createRoutes } from "./routes.ts";
import { createSessions, isOver } from "./sessions.ts";
import { createAttachments } from "./streams/attachments.ts";
import { forgetSession } from "./streams/stream-record.ts";
import { createTurns } from "./streams/turns.ts";
import { openUpkeep } from "./streams/upkeep.ts";
import {
  createNeighbours,
  createPeers,
  createStores,
  DECLARED,
  openFollowing,
  reasonOfCancellation,
} from "./subscriptions.ts";

export async function openService(
  config: Config,
  context: ServiceContext,
  clock: Clock = systemClock,
): Promise<OpenService> {
  const { name, instance, logger, telemetry } = context;
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openServiceBus(config, context, ACCESS["caller-relay"].stores));
  const trail = stack.use(openAuditTrail(bus, name, logger));
  const { declared, late, answered, results, records, holders } = createStores(bus, instance);
  const changesOfDeclarations = new KeyedListeners();
  const declarations = createDeclarations(declared, changesOfDeclarations);
  const { readSession, tellInbox, toolsOf } = createNeighbours(bus, telemetry);
  const peers = createPeers(bus, name, instance);
  const [attachments, changes, turns] = [createAttachments(), new KeyedListeners(), createTurns()];
  const [requests, calls] = [createRequests(), createCalls()];
  const onError = (error: unknown) => logger.error({ err: error }, "what callers do cannot be followed");
  const onFault = (fault: string) => logger.error(fault);
  stack.use(await openFollowing({ records, declared, attachments, changes, turns, changesOfDeclarations, onFault }));

  const carry: SendingParts["carry"] = async (stream, request, by) =>
    stream.instance === instance
      ? attachments.carry(stream.attachmentId, request, { ...by, holder: instance })
      : peers.carry(stream, request, by);
  const cancel: SendingParts["cancel"] = async (stream, requestId, why) =>
    stream.instance === instance
      ? attachments.find(stream.attachmentId)?.cancel(requestId, reasonOfCancellation(why), instance)
      : peers.cancel(stream, requestId, reasonOfCancellation(why));
  const stateOf: typeof peers.stateOf = async (stream, sessionId) => {
    if (stream.instance !== instance) return peers.stateOf(stream, sessionId);
    return attachments.find(stream.attachmentId) ? "attached" : "lost";
  };
  stack.use(openUpkeep({ attachments, declared, records, clock, stateOf, onError }));
  const stopping = createStopping();
  const sending = { carry, cancel, records, changes, turns, answered, results, clock, stopping: stopping.signal };
  const held = { ...sending, requests, holders, late };
  const defaultTimeoutMs = config.callerTimeoutMs;
  const relay = createRelay({
    ...{ defaultTimeoutMs, declarations, records, calls, holders, clock, stopping: stopping.signal },
    hold: (call, abandoned) => deliver(held, call, abandoned),
    join: peers.join,
  });
  const answers = createAnswers({
    ...{ requests, holders, late, answered, results, forward: peers.forward, tellInbox },
    ...{ instance, attachments, records, keepAt: peers.keep },
  });
  const progress = createProgressReports({ requests, holders, forward: peers.tellProgress });

  const sessions = createSessions({
    readSession,
    onStranger: (sessionId, principal) =>
      trail.record(
        {
          kind: AuditKind.BLOCKED,
          sessionId,
          rule: "not the session's owner",
          message: `${JSON.stringify(principal)} may not act for the caller of this session`,
        },
        principal,
      ),
  });
  const usage = usageBySession(bus, { ...DECLARED, findPrincipal: sessions.findPrincipal });
  const remedy = "declare no tools for sessions that nobody uses";
  const quota = stack.use(openQuota(bus, { ...usage, holds: "declarations", remedy, onFault }));

  const served = { instance, logger, telemetry };
  const peerRoutes = createPeerRoutes({ attachments, answers, progress, relay });
  stack.use(await serveOnBus(bus, { ...served, service: instanceService(name, instance), routes: peerRoutes }));
  const routes = createRoutes({
    ...{
      attachments,
      records,
      clock,
      instance,
      declarations,
      answers,
      progress,
      relay,
      stateOf,
      toolsOf,
      defaultTimeoutMs,
    },
    isClosed: async (sessionId) => isOver(await readSession(sessionId)),
    forget: (sessionId) => forgetSession({ records, declared }, sessionId),
    sessions,
    quota,
    validator: createValidator(),
    graceMs: config.callerGraceMs,
    maxGraceMs: config.callerMaxGraceMs,
    stopping: stopping.signal,
  });
  stack.use(await serveOnBus(bus, { ...served, service: name, routes }));
  stack.use(stopping);
  return stack.move();
}
